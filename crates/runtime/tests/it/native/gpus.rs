//! Graphics processors, on a host whose devices are the test's own.

use std::fs;
use std::path::Path;

use barchan_runtime::{EndReason, ErrorKind, Gpus, Limits, Plan, Runtime};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::world::{World, plan};

async fn world(devices: &Path) -> World {
    let state = tempfile::tempdir().unwrap();
    World::with(state, Vec::new(), devices.to_owned()).await
}

fn with(script: &str, gpus: Option<Gpus>) -> Plan {
    Plan {
        gpus,
        ..plan("host", &["/bin/sh", "-c", script], Limits::default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_graphics_processors_says_so() {
    let devices = tempfile::tempdir().unwrap();
    // What only looks like one: no device, and a link to one.
    fs::write(devices.path().join("nvidia0"), "").unwrap();
    std::os::unix::fs::symlink("/dev/null", devices.path().join("nvidia1")).unwrap();
    let world = world(devices.path()).await;
    assert_eq!(world.native.capabilities().gpus, 0);
    let made = world.native.create(with("true", Some(Gpus::All))).await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_sees_the_processors_that_it_asked_for_and_no_other() {
    if !rustix::process::geteuid().is_root() {
        // Others cannot make device nodes, and so have no host like that to be on.
        return;
    }
    let devices = tempfile::tempdir().unwrap();
    fs::create_dir(devices.path().join("dri")).unwrap();
    // The null device poses as each of them.
    for name in ["nvidia0", "nvidia1", "nvidiactl", "dri/renderD128", "other"] {
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o600));
        mknodat(CWD, devices.path().join(name), kind, mode, makedev(1, 3)).unwrap();
    }
    let world = world(devices.path()).await;
    assert_eq!(world.native.capabilities().gpus, 2);
    let script = "for f in nvidia0 nvidiactl dri/renderD128; do echo x >/dev/$f || exit 1; done; \
                  ls /dev/nvidia1 /dev/other /dev/new 2>/dev/null; echo x >/dev/shm/f; \
                  ls /dev/shm /dev/pts; touch /dev/new 2>&1; echo x >/dev/null";
    let (reason, log) = world.run_plan(with(script, Some(Gpus::Count(1)))).await;
    assert_eq!(reason, EndReason::Exit(0), "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(
        log.contains("/dev/shm:\nf\n") && log.contains("ptmx"),
        "{log}"
    );
    assert!(
        !log.contains("/dev/nvidia1\n") && !log.contains("/dev/other\n"),
        "{log}"
    );
    let (_, log) = world.run_plan(with("ls /dev", None)).await;
    assert!(!log.contains("nvidia") && !log.contains("dri"), "{log}");
    let made = world
        .native
        .create(with("true", Some(Gpus::Count(3))))
        .await;
    assert_eq!(made.unwrap_err().kind, ErrorKind::Unsupported);
}
