//! What sandboxes mount besides their images.

mod escape;
mod named;

use std::path::{Path, PathBuf};

use barchan_runtime::{
    EndReason, ErrorKind, Limits, NewVolume, Plan, Runtime, RuntimeError, Volume, VolumeFault,
    VolumeSource,
};
use tempfile::TempDir;

use super::world::{World, plan};

/// The size of the volumes of these tests.
const BYTES: u64 = 32 << 20;

/// A world whose sandboxes may mount below the folder `allowed` of a place, beside which lies one
/// more.
struct Place {
    world: World,
    place: TempDir,
}

impl Place {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["allowed/data", "outside"] {
            std::fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        std::fs::write(place.path().join("outside/secret"), "secret").unwrap();
        std::fs::write(place.path().join("allowed/data/marker"), "marker").unwrap();
        let allowed = vec![place.path().canonicalize().unwrap().join("allowed")];
        let state = tempfile::tempdir().unwrap();
        let world = World::with(state, allowed, PathBuf::from("/dev")).await;
        Self { world, place }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    /// What a script says at its end in a sandbox with these volumes.
    async fn says(&self, script: &str, volumes: Vec<Volume>) -> String {
        let (reason, log) = self.run(script, volumes).await;
        assert_eq!(reason, EndReason::Exit(0), "{script}: {log}");
        log.trim().to_owned()
    }

    async fn run(&self, script: &str, volumes: Vec<Volume>) -> (EndReason, String) {
        self.world.run_plan(with(script, volumes)).await
    }

    /// Why a sandbox with these volumes does not come about.
    async fn refused(&self, volumes: Vec<Volume>) -> ErrorKind {
        let made = self.world.native.create(with("true", volumes)).await;
        made.unwrap_err().kind
    }
}

fn with(script: &str, volumes: Vec<Volume>) -> Plan {
    Plan {
        volumes,
        ..plan("host", &["/bin/sh", "-c", script], Limits::default())
    }
}

/// A path of the host, mounted at /v.
fn host(path: &Path) -> Volume {
    Volume {
        name: "v".to_owned(),
        source: VolumeSource::HostPath(path.to_str().unwrap().to_owned()),
        sub_path: String::new(),
        target: "/v".to_owned(),
        read_only: false,
    }
}

/// A named volume, mounted at /v.
fn named(name: &str) -> Volume {
    let new = NewVolume {
        bytes: BYTES,
        is_asked: false,
        goes_with_sandbox: false,
    };
    Volume {
        source: VolumeSource::Named {
            name: name.to_owned(),
            new: Some(new),
        },
        ..host(Path::new(""))
    }
}

fn read_only(volume: Volume) -> Volume {
    Volume {
        read_only: true,
        ..volume
    }
}

fn at(volume: Volume, target: &str) -> Volume {
    Volume {
        target: target.to_owned(),
        ..volume
    }
}

fn part(volume: Volume, sub_path: &str) -> Volume {
    Volume {
        sub_path: sub_path.to_owned(),
        ..volume
    }
}

fn fault(fault: VolumeFault) -> ErrorKind {
    ErrorKind::Volume(fault)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_the_host_is_read_and_written() {
    let place = Place::new().await;
    let data = host(&place.at("allowed/data"));
    let script = "cat /v/marker; mkdir /v/d; echo back >/v/d/f; stat -c %u:%g /v/d/f";
    assert_eq!(place.says(script, vec![data.clone()]).await, "marker0:0");
    let written = std::fs::read_to_string(place.at("allowed/data/d/f")).unwrap();
    assert_eq!(written, "back\n");
    let file = at(host(&place.at("allowed/data/marker")), "/tmp/deep/file");
    assert_eq!(place.says("cat /tmp/deep/file", vec![file]).await, "marker");
    let missing = host(&place.at("allowed/new/er"));
    place.says("touch /v/made", vec![missing]).await;
    assert!(place.at("allowed/new/er/made").exists());
    let part = part(data, "d");
    assert_eq!(place.says("cat /v/f", vec![part]).await, "back");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_only_stays_as_it_is() {
    let place = Place::new().await;
    place.says("echo kept >/v/f", vec![named("n")]).await;
    for volume in [host(&place.at("allowed/data")), named("n")] {
        let script = "echo x >/v/new || echo x >/v/f || rm -r /v/* || chmod 777 /v || \
                      mount -o remount,rw /v || echo all refused; echo x >/workspace/f && ls /v";
        let told = place.says(script, vec![read_only(volume)]).await;
        assert!(told.contains("all refused"), "{told}");
        assert!(!told.lines().any(|line| line == "new"), "{told}");
        assert!(told.contains("Read-only file system"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_lie_in_each_other_and_over_the_image() {
    let place = Place::new().await;
    let volumes = vec![
        at(host(&place.at("allowed/data")), "/workspace"),
        at(named("n"), "/workspace/inner"),
    ];
    let script = "pwd; cat marker; echo x >inner/f; ls inner";
    assert_eq!(place.says(script, volumes).await, "/workspace\nmarkerf");
    assert!(place.at("allowed/data/inner").is_dir());
    assert!(!place.at("allowed/data/inner/f").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_none_is_told() {
    let place = Place::new().await;
    let data = host(&place.at("allowed/data"));
    for target in ["/bin/x", "/etc/hostname/x", "/usr/lib/nowhere/x"] {
        let refused = place.refused(vec![at(data.clone(), target)]).await;
        assert_eq!(refused, fault(VolumeFault::MountPath), "{target}");
    }
    let file = at(host(&place.at("allowed/data/marker")), "/tmp");
    let refused = place.refused(vec![file]).await;
    assert_eq!(refused, fault(VolumeFault::MountPath));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_host_paths_reach_a_launcher_that_has_no_sandboxes() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("f"), "x").unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut world = World::with(state, Vec::new(), PathBuf::from("/dev")).await;
    let launcher = world.native.launcher_pid();
    world
        .start_anew(vec![place.path().canonicalize().unwrap()])
        .await;
    assert_ne!(world.native.launcher_pid(), launcher);
    let (_, log) = world
        .run_plan(with("cat /v/f", vec![host(place.path())]))
        .await;
    assert_eq!(log, "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_with_sandboxes_keeps_its_host_paths() {
    let place = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let mut world = World::with(state, Vec::new(), PathBuf::from("/dev")).await;
    world.create("host").await.unwrap();
    let launcher = world.native.launcher_pid();
    world
        .start_anew(vec![place.path().canonicalize().unwrap()])
        .await;
    assert_eq!(world.native.launcher_pid(), launcher);
    let made = world
        .native
        .create(with("true", vec![host(place.path())]))
        .await;
    let RuntimeError { kind, message } = made.unwrap_err();
    assert_eq!(kind, fault(VolumeFault::HostPathNotAllowed));
    assert!(message.contains("started with other"), "{message}");
}
