//! A sandbox that takes all it can get suffers alone: it gets no more than its limit, and its
//! neighbour answers meanwhile.

use std::time::Duration;

use barchan_runtime::{EXECD_PORT, EndReason, Limits, Phase, Runtime, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::arena::python;
use super::row::is_root;
use crate::native::traces::{daemons_of, processes_beside};
use crate::native::world::{World, plan};

const BOMBS: &str = include_str!("attacks/bombs.py");

/// Longest time for a neighbour's command while a bomb goes off. Both share two cores with whatever
/// else this host does.
const NEIGHBOUR_WAITS_MAX: Duration = Duration::from_secs(3);

/// One thing to take too much of.
struct Bomb {
    name: &'static str,
    limits: Limits,
    /// Most it may get: mebibytes, files, processes.
    most: u64,
    /// The same for an ordinary user, whose sandboxes have no control groups.
    most_rootless: u64,
    /// Where it stops by itself; the control gets so far.
    ceiling: u64,
    /// With these limits nothing holds it.
    control: Limits,
}

const NONE: Limits = Limits {
    cpu_millis: None,
    memory_bytes: None,
    pids: None,
    disk_bytes: None,
};

/// Memory that only the watchdog sees: it looks five times a second, and a bomb takes 8 MiB every
/// 10 ms.
const fn memory(name: &'static str, most: u64, most_rootless: u64) -> Bomb {
    Bomb {
        name,
        limits: Limits {
            memory_bytes: Some(96 << 20),
            ..NONE
        },
        most,
        most_rootless,
        ceiling: 512,
        control: Limits {
            disk_bytes: Some(1 << 30),
            ..NONE
        },
    }
}

const fn disk(name: &'static str, most: u64, ceiling: u64) -> Bomb {
    Bomb {
        name,
        limits: Limits {
            disk_bytes: Some(64 << 20),
            ..NONE
        },
        most,
        most_rootless: most,
        ceiling,
        control: Limits {
            disk_bytes: Some(1 << 30),
            ..NONE
        },
    }
}

/// A PID namespace takes no limit below 301; one of those is the daemon.
const fn pids(name: &'static str) -> Bomb {
    Bomb {
        name,
        limits: Limits {
            pids: Some(40),
            ..NONE
        },
        most: 39,
        most_rootless: 300,
        ceiling: 600,
        control: NONE,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_ends_at_its_limit() {
    set_off_beside_a_neighbour(&[
        memory("memory", 96, 96),
        memory("memory of children", 96, 352),
        memory("shared memory", 96, 352),
        memory("memory file", 96, 352),
        memory("segment", 96, 96),
        memory("/tmp", 64, 64),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_ends_at_its_limit() {
    set_off_beside_a_neighbour(&[disk("disk", 64, 256), disk("files", 17_000, 40_000)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_end_at_their_limit() {
    set_off_beside_a_neighbour(&[pids("processes"), pids("threads")]).await;
}

/// Each bomb gets no more than it may while a neighbour works on, and all it wants without limits.
async fn set_off_beside_a_neighbour(bombs: &[Bomb]) {
    let world = World::new().await;
    let neighbour = world.create("host").await.unwrap();
    let neighbour = world
        .native
        .endpoint(&neighbour.id, EXECD_PORT)
        .await
        .unwrap();
    for bomb in bombs {
        let name = bomb.name;
        let most = if is_root() {
            bomb.most
        } else {
            bomb.most_rootless
        };
        let ((got, reason), waited) = beside(&neighbour, set_off(&world, bomb, bomb.limits)).await;
        assert!(
            got > 0 && got <= most,
            "{name}: got {got} of {most}, {reason:?}"
        );
        assert!(
            waited < NEIGHBOUR_WAITS_MAX,
            "{name}: the neighbour took {waited:?}"
        );
        let (control, reason) = set_off(&world, bomb, bomb.control).await;
        let ceiling = bomb.ceiling;
        assert!(
            control >= ceiling,
            "{name} without limits: {control}, {reason:?}"
        );
    }
}

/// Lets a bomb go off in a sandbox of its own: how much it got, and how the sandbox ended.
async fn set_off(world: &World, bomb: &Bomb, limits: Limits) -> (u64, EndReason) {
    let python = python().display().to_string();
    let ceiling = bomb.ceiling.to_string();
    let plan = plan("host", &[&python, "-c", BOMBS, bomb.name, &ceiling], limits);
    let (reason, log) = world.run_plan(plan).await;
    let mut counts = log.lines().filter_map(|line| line.strip_prefix("got "));
    (
        counts.next_back().map_or(0, |got| got.parse().unwrap()),
        reason,
    )
}

/// Has the neighbour run command after command while `work` lasts; the longest wait for one.
async fn beside<T>(neighbour: &Upstream, work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let mut longest = run_command(neighbour).await;
    loop {
        tokio::select! {
            done = &mut work => return (done, longest),
            waited = run_command(neighbour) => longest = longest.max(waited),
        }
    }
}

async fn run_command(neighbour: &Upstream) -> Duration {
    let body = r#"{"command":"echo $((6 * 7))"}"#;
    let request = format!(
        "POST /command HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let begun = Instant::now();
    let answered = tokio::time::timeout(NEIGHBOUR_WAITS_MAX, async {
        let mut stream = UnixStream::connect(&neighbour.socket).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    let answer = answered.await.expect("the neighbour does not answer");
    assert!(answer.contains("42"), "{answer}");
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_runs_out_is_named_as_the_reason() {
    let world = World::new().await;
    let bomb = memory("memory of children", 0, 0);
    let (_, reason) = set_off(&world, &bomb, bomb.limits).await;
    // The kernel's or the watchdog's choice falls on a child first, and the entrypoint goes on.
    assert!(
        matches!(reason, EndReason::Oom | EndReason::Exit(0)),
        "{reason:?}"
    );
    let one = memory("shared memory", 0, 0);
    let (_, reason) = set_off(&world, &one, one.limits).await;
    assert_eq!(reason, EndReason::Oom);
    let (_, reason) = set_off(&world, &one, one.control).await;
    assert_eq!(reason, EndReason::Exit(0), "without a limit");
}

/// Spins for a second and prints how many milliseconds of CPU time two processes got.
const SPIN: &str = "import os,time\n\
    pid = os.fork()\n\
    end = time.monotonic() + 1\n\
    while time.monotonic() < end: pass\n\
    pid or os._exit(0)\n\
    os.wait()\n\
    used = os.times()\n\
    print(int(1000 * (used.user + used.system + used.children_user + used.children_system)))";

#[tokio::test(flavor = "multi_thread")]
async fn a_spinning_sandbox_gets_its_share_and_no_more() {
    let world = World::new().await;
    let python = python().display().to_string();
    let spin = |cpu_millis| {
        let limits = Limits { cpu_millis, ..NONE };
        world.run_plan(plan("host", &[&python, "-c", SPIN], limits))
    };
    if !is_root() {
        let limits = Limits {
            cpu_millis: Some(50),
            ..NONE
        };
        let tail = ["tail", "-f", "/dev/null"];
        let made = world.native.create(plan("host", &tail, limits)).await;
        assert!(made.unwrap().unenforced.contains(&"cpu".to_owned()));
        return;
    }
    let used = async |cpu| spin(cpu).await.1.trim().parse::<u64>().unwrap();
    let (limited, control) = (used(Some(50)).await, used(None).await);
    // The interpreter's own start counts too.
    assert!(limited < 200, "used {limited} ms of CPU time in a second");
    assert!(
        control > 2 * limited,
        "{limited} ms limited, {control} ms not"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output_is_swallowed_whole() {
    let world = World::new().await;
    let neighbour = world.create("host").await.unwrap();
    let neighbour = world
        .native
        .endpoint(&neighbour.id, EXECD_PORT)
        .await
        .unwrap();
    // Without line ends, and bytes that are no text.
    let script = "head -c 300000000 /dev/zero; head -c 1000000 /dev/urandom; echo; echo the end";
    let (ended, waited) = beside(&neighbour, world.run(script, NONE)).await;
    let (reason, log) = ended;
    assert_eq!(reason, EndReason::Exit(0));
    assert!(log.ends_with("the end\n"), "the last line is missing");
    // What is no text takes three bytes for one.
    assert!(
        log.len() <= 3 * barchan_runtime::LOG_BYTES_MAX,
        "{}",
        log.len()
    );
    assert!(waited < NEIGHBOUR_WAITS_MAX, "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_resist_end_with_their_sandbox() {
    let world = World::new().await;
    let stubborn = "trap '' TERM HUP INT QUIT; \
        setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & sleep 1000' & \
        (setsid sleep 1000 &) ; \
        sh -c 'kill -STOP $$' & \
        (setsid sh -c 'sleep 1000 & sleep 1000 & wait' &) ; \
        sleep 1000; sleep 1000";
    let plan = plan("host", &["/bin/sh", "-c", stubborn], NONE);
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    let daemon = daemons_of(world.native.launcher_pid())[0];
    let deadline = Instant::now() + Duration::from_secs(10);
    while processes_beside(daemon).len() < 9 {
        assert!(Instant::now() < deadline, "{:?}", processes_beside(daemon));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let those = processes_beside(daemon);
    let begun = Instant::now();
    world.native.delete(&id).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    let left: Vec<_> = those.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {those:?} still run");
    let observed = world.native.observe(&id).await.unwrap();
    assert!(observed.is_none_or(|it| matches!(it.phase, Phase::Ended(_))));
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
