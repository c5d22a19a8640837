//! A snapshot is of one moment, and the sandbox goes on after it.

use std::time::Duration;

use barchan_runtime::{ErrorKind, Pause, Phase, Runtime};

use super::{World, is_able, new_id, order};

/// Writers that keep a promise at every moment: `a` is never behind `b`, files move between two
/// folders and are always in one of them, and a page that is written through memory counts on.
const WRITE: &str = r#"
mkdir -p /data/one /data/two; cd /data
for n in $(seq 300); do head -c 20000 /dev/urandom >one/$n; done
python3 - <<'END' &
import mmap
f = open("/data/mapped", "w+b"); f.truncate(8192)
m = memoryview(mmap.mmap(f.fileno(), 8192)).cast("Q")
n = 0
while True:
    n += 1
    if n == 1000: open("/data/begun", "w").close()
    m[0] = n; m[512] = n
END
(while :; do for n in $(seq 300); do mv one/$n two/$n; done
             for n in $(seq 300); do mv two/$n one/$n; done; done) &
until [ -e begun ]; do sleep 0.01; done
echo 0 >a; echo 0 >b
echo =ready=
n=0
while :; do n=$((n+1)); echo $n >a.new; mv a.new a; echo $n >b.new; mv b.new b; done
"#;

const CHECK: &str = r#"
cd /data
echo $(( $(cat a) - $(cat b) ))
ls one two | grep -c '^[0-9]'
python3 -c '
import struct
d = open("/data/mapped", "rb").read()
a, b = struct.unpack_from("<Q", d, 0)[0], struct.unpack_from("<Q", d, 4096)[0]
print(a - b, a > 0 and b > 0, a, b)'
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_of_one_moment() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let id = world.start(WRITE, None).await;
    world.told(&id, super::READY).await;
    for _ in 0..3 {
        let snapshot = world.save(&id).await;
        let told = world.restored(&snapshot, CHECK).await;
        let lines: Vec<&str> = told.lines().collect();
        let [ahead, files, mapped] = lines.as_slice() else {
            panic!("{told}")
        };
        assert!(["0", "1"].contains(ahead), "{told}");
        assert_eq!(*files, "300", "{told}");
        let is_whole = ["0 True", "1 True"].iter().any(|it| mapped.starts_with(it));
        assert!(is_whole, "{told}");
    }
    let seen = world.native.observe(&id).await.unwrap().unwrap();
    assert_eq!(seen.phase, Phase::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_goes_on_while_much_is_copied() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let much = "mkdir /data; head -c 120000000 /dev/urandom >/data/much; sync; echo =ready=; \
                while :; do echo tick; sleep 0.01; done";
    let id = world.start(much, None).await;
    world.told(&id, super::READY).await;
    let began = tokio::time::Instant::now();
    let (_, taken) = world.try_save(&id).await.unwrap();
    let whole = began.elapsed();
    // Not how fast, but that it stood still for a part of the time only: what is copied in the
    // last walk is what changed, and nothing much did.
    assert!(taken.bytes >= 120_000_000, "{taken:?}");
    assert!(
        taken.still > Duration::ZERO && taken.still < whole,
        "{taken:?} of {whole:?}"
    );
    let ticks = |log: &str| log.matches("tick").count();
    let before = ticks(&String::from_utf8_lossy(
        &world.native.logs(&id).await.unwrap(),
    ));
    let deadline = began + super::PATIENCE;
    while ticks(&String::from_utf8_lossy(
        &world.native.logs(&id).await.unwrap(),
    )) <= before
    {
        assert!(tokio::time::Instant::now() < deadline, "it does not go on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_running_sandboxes_are_saved_and_a_pause_outlasts_a_snapshot() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, _) = world.after("echo x >/f", None).await;
    world.native.pause(&id, Pause::Freeze).await.unwrap();
    let refused = world.try_save(&id).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    world.native.resume(&id).await.unwrap();
    let snapshot = world.save(&id).await;
    let again = world
        .native
        .snapshot(order(&id, &snapshot))
        .await
        .unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict, "{again}");
    // Pauses and snapshots at once, whichever comes first: it is paused in the end.
    for _ in 0..10 {
        let other = new_id();
        let (taken, paused) = tokio::join!(
            world.native.snapshot(order(&id, &other)),
            world.native.pause(&id, Pause::Freeze)
        );
        paused.unwrap();
        if let Err(error) = taken {
            let is_expected = matches!(error.kind, ErrorKind::Conflict | ErrorKind::Busy);
            assert!(is_expected, "{error}");
        }
        let seen = world.native.observe(&id).await.unwrap().unwrap();
        assert_eq!(seen.phase, Phase::Paused);
        world.native.resume(&id).await.unwrap();
    }
    world.native.delete(&id).await.unwrap();
    let gone = world.try_save(&id).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::NotFound);
}
