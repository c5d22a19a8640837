//! Who keeps files from being exchanged, and what becomes of old descriptors when they are.

use barchan_runtime::{Holding, Limits, Runtime, Sealed, WhenHeld};

use super::is_able;
use crate::native::world::{World, plan};

/// Who says that it is ready and then waits.
fn waits(script: &str) -> Vec<String> {
    let script = format!("{script}\necho ready; exec sleep 100000");
    ["/bin/sh", "-c", &script].map(str::to_owned).to_vec()
}

fn python(script: &str) -> Vec<String> {
    let script = format!("import os, sys, time\n{script}");
    ["/usr/bin/python3", "-c", &script]
        .map(str::to_owned)
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_uses_the_files_is_found() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let stays = "print('ready', flush=True)\ntime.sleep(100000)";
    let rooted = format!("os.mkdir('/r')\nos.chroot('/r')\n{stays}");
    let other = "'/a\\033[2J\\nb\\377'";
    let hostile = format!("exec 3>\"$(printf {other})\"");
    for (argv, expected) in [
        (waits("exec 3>/w"), Some((Holding::Writes, "/w"))),
        (waits("exec 3>>/w"), Some((Holding::Writes, "/w"))),
        (waits("exec 3<>/w"), Some((Holding::Writes, "/w"))),
        (
            waits(&hostile),
            Some((Holding::Writes, "/a\u{1b}[2J\nb\u{fffd}")),
        ),
        (
            waits("exec 3</workspace"),
            Some((Holding::Folder, "/workspace")),
        ),
        (
            waits("mkdir /x && cd /x && rmdir /x"),
            Some((Holding::WorkingDirectory, "/x (deleted)")),
        ),
        (python(&rooted), Some((Holding::Root, "/r"))),
        (waits("echo x > /w; exec 3</w; cd /tmp"), None),
        (waits("exec 3>/tmp/w 4>/dev/null"), None),
        (waits("(sleep 100000) & mkdir -p /x/y && cd /x/y"), None),
    ] {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let plan = plan("host", &words, Limits::default());
        let id = plan.id.clone();
        world.native.create(plan).await.unwrap();
        world.told(&id, "ready").await;
        let found = match world.try_seal(&id, WhenHeld::Refuse).await {
            Sealed::Layer(layer) => {
                assert!(!layer.is_copied);
                None
            }
            Sealed::Held(holders) => {
                let holder = holders.into_iter().next().unwrap();
                Some((holder.how, holder.what))
            }
        };
        let expected = expected.map(|(how, what)| (how, what.to_owned()));
        assert_eq!(found, expected, "{argv:?}");
        let layer = world.seal(&id).await;
        assert_eq!(layer.is_copied, expected.is_some(), "{argv:?}");
        world.native.delete(&id).await.unwrap();
    }
}

/// Waits until the root was exchanged, and tries to change what it had open before.
const CHANGES: &str = "
os.chdir('/')
open('/own', 'w').write('before')
os.chmod('/own', 0o640)
own, image = os.open('/own', os.O_RDONLY), os.open('/etc/passwd', os.O_RDONLY)
root, done = os.stat('/').st_dev, []
print('ready', flush=True)
while os.stat('/').st_dev == root:
    time.sleep(0.01)
for fd in (own, image):
    path = f'/proc/self/fd/{fd}'
    for name, change in {
        'write': lambda: os.open(path, os.O_WRONLY),
        'append': lambda: os.open(path, os.O_RDWR | os.O_APPEND),
        'truncate': lambda: os.truncate(path, 0),
        'mode': lambda: os.fchmod(fd, 0o777),
        'mode by path': lambda: os.chmod(path, 0o777),
        'owner': lambda: os.fchown(fd, 7, 7),
        'times': lambda: os.utime(fd, (0, 0)),
        'attribute': lambda: os.setxattr(fd, 'user.x', b'x'),
        'link': lambda: os.link(path, '/linked', follow_symlinks=True),
    }.items():
        try:
            change()
            done.append(name)
        except OSError:
            pass
open('/own', 'w').write('after')
print(f'changed {done}.', os.pread(own, 9, 0), open('/own').read(), flush=True)
time.sleep(100000)";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_open_changes_a_sealed_layer() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let argv = python(CHANGES);
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let plan = plan("host", &words, Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "ready").await;
    let layer = world.seal(&id).await;
    assert!(!layer.is_copied, "{layer:?}");
    let told = world.told(&id, "changed").await;
    assert!(told.contains("changed []. b'before' after"), "{told}");
    let script = "cat /own; stat -c ' %a %u %h' /own; ls /linked; getfattr /own 2>&1; true";
    let sealed = world.forked(&id, layer.number, script).await;
    assert!(sealed.starts_with("before 640 0 1\n"), "{sealed}");
    world.native.delete(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_that_did_not_come_about_takes_no_room() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    // More than fits a second time, and a file that keeps it from being exchanged.
    let free = "df -m / | tail -1 | awk '{print $4}'";
    let script = format!(
        "head -c 150000000 /dev/zero > /large; exec 3> /held; \
         while sleep 0.02; do echo \"free $({free}).\"; done"
    );
    let argv = ["/bin/sh", "-c", &script];
    let plan = plan("host", &argv, Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    let free = |log: &str| -> u32 {
        let number = |line: &str| {
            line.strip_prefix("free ")?
                .trim_end_matches('.')
                .parse()
                .ok()
        };
        log.lines().rev().find_map(number).unwrap()
    };
    let before = free(&world.told(&id, "free ").await);
    let order = barchan_runtime::SealOrder {
        sandbox: id.clone(),
        when_held: WhenHeld::Copy,
        note: String::new(),
        wait: super::PATIENCE,
    };
    let failed = world.native.seal(order).await.unwrap_err();
    assert!(failed.message.contains("No space left"), "{failed}");
    let deadline = tokio::time::Instant::now() + super::PATIENCE;
    loop {
        let log = String::from_utf8(world.native.logs(&id).await.unwrap()).unwrap();
        if free(&log) + 2 >= before {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{before}: {log}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.native.delete(&id).await.unwrap();
}
