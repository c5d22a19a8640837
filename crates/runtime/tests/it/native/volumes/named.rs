//! Named volumes: what outlives sandboxes, and what does not.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::{Limits, NamedVolume, Runtime, Volume, VolumeFault, VolumeSource};
use rustix::process::{Pid, Signal};
use tokio::task::JoinSet;

use super::{BYTES, Place, at, fault, named, part, with};
use crate::native::world::World;

/// Longest time for a new launcher.
const PATIENCE: Duration = Duration::from_secs(20);

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A volume that goes with the sandbox it is made for, or that must be there.
fn renewed(name: &str, is_made: bool, goes_with_sandbox: bool) -> Volume {
    let volume = named(name);
    let VolumeSource::Named { new, .. } = volume.source else {
        panic!("it is named")
    };
    let new = new.map(|new| barchan_runtime::NewVolume {
        goes_with_sandbox,
        ..new
    });
    Volume {
        source: VolumeSource::Named {
            name: name.to_owned(),
            new: new.filter(|_| is_made),
        },
        ..volume
    }
}

impl World {
    async fn names(&self) -> Vec<String> {
        let found = self.native.volumes().await.unwrap();
        found.into_iter().map(|volume| volume.name).collect()
    }

    async fn volume(&self, name: &str) -> NamedVolume {
        let found = self.native.volumes().await.unwrap();
        found.into_iter().find(|it| it.name == name).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_sandbox_writes_the_next_reads_and_changes() {
    let place = Place::new().await;
    let volumes = || vec![named("shared")];
    let script = "echo one >/v/f; mkdir -m 700 /v/d; echo deep >/v/d/f";
    place.says(script, volumes()).await;
    // As many as are spare, so that each runs under another range of ids where each has its own.
    for round in 0..3 {
        let script = format!(
            "stat -c %u /v/f /v/d/f; cat /v/d/f; echo {round} >>/v/f; chmod 600 /v/f; ls -A /v"
        );
        let told = place.says(&script, volumes()).await;
        assert_eq!(told, "0\n0\ndeep\nd\nf");
    }
    assert_eq!(place.says("cat /v/f", volumes()).await, "one\n0\n1\n2");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_share_a_volume_while_they_run() {
    let place = Place::new().await;
    let native = &place.world.native;
    let waits = "until [ -e /v/here ]; do sleep 0.01; done; echo seen >/v/there; sleep 1000";
    let waiting = with(waits, vec![named("shared")]);
    let id = waiting.id.clone();
    native.create(waiting).await.unwrap();
    let script = "touch /v/here; until [ -s /v/there ]; do sleep 0.01; done; cat /v/there";
    assert_eq!(place.says(script, vec![named("shared")]).await, "seen");
    assert_eq!(
        place.world.volume("shared").await.sandboxes,
        [id.to_string()]
    );
    let refused = native.remove_volume("shared").await.unwrap_err();
    assert_eq!(refused.kind, fault(VolumeFault::InUse));
    assert!(refused.message.contains(id.as_str()), "{refused}");
    native.delete(&id).await.unwrap();
    native.remove_volume("shared").await.unwrap();
    let refused = native.remove_volume("shared").await.unwrap_err();
    assert_eq!(refused.kind, fault(VolumeFault::NotFound));
    assert!(place.world.names().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_holds_what_it_is_meant_to_where_disks_can_be_mounted() {
    let place = Place::new().await;
    let script = "head -c 100000000 /dev/zero >/v/f; ls -A /v; stat -c %s /v/f";
    let (_, log) = place.run(script, vec![named("small")]).await;
    let written: u64 = log.lines().last().unwrap().parse().unwrap();
    let volume = place.world.volume("small").await;
    if is_root() {
        assert!(written < BYTES && log.contains("No space left"), "{log}");
        assert_eq!(volume.size_bytes, Some(BYTES));
        assert!(volume.used_bytes.unwrap() > 0);
    } else {
        assert_eq!(written, 100_000_000, "{log}");
        assert_eq!(volume.size_bytes, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_is_not_kept_to_is_told() {
    let place = Place::new().await;
    let volume = named("sized");
    let VolumeSource::Named { new, .. } = volume.source.clone() else {
        panic!("it is named")
    };
    let source = VolumeSource::Named {
        name: "sized".to_owned(),
        new: new.map(|new| barchan_runtime::NewVolume {
            is_asked: true,
            ..new
        }),
    };
    let plan = with("true", vec![Volume { source, ..volume }]);
    let observed = place.world.native.create(plan).await.unwrap();
    let is_told = observed.unenforced.iter().any(|name| name == "storage");
    assert_eq!(is_told, !is_root(), "{observed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_volume_made_for_a_sandbox_goes_with_it() {
    let place = Place::new().await;
    let native = &place.world.native;
    place.says("true", vec![named("before")]).await;
    let volumes = vec![
        renewed("before", true, true),
        at(renewed("own", true, true), "/own"),
        at(named("stays"), "/stays"),
        at(renewed("lent", true, true), "/lent"),
    ];
    let plan = with("exit 3", volumes);
    let id = plan.id.clone();
    native.create(plan).await.unwrap();
    let borrower = with("sleep 1000", vec![renewed("lent", false, false)]);
    native.create(borrower).await.unwrap();
    assert_eq!(
        place.world.names().await,
        ["before", "lent", "own", "stays"]
    );
    assert_eq!(
        place.world.volume("own").await.deleted_with,
        Some(id.to_string())
    );
    native.delete(&id).await.unwrap();
    assert_eq!(place.world.names().await, ["before", "lent", "stays"]);
    assert_eq!(place.world.volume("lent").await.deleted_with, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_fails_leaves_no_volume() {
    let place = Place::new().await;
    let refused = place.refused(vec![renewed("none", false, false)]).await;
    assert_eq!(refused, fault(VolumeFault::NotFound));
    place.says("true", vec![named("before")]).await;
    for (target, expected) in [
        ("/usr/lib/nowhere", VolumeFault::MountPath),
        ("/bin/x", VolumeFault::MountPath),
    ] {
        let volumes = vec![
            named("before"),
            at(named("new"), "/new"),
            at(named("other"), target),
        ];
        assert_eq!(place.refused(volumes).await, fault(expected), "{target}");
        assert_eq!(place.world.names().await, ["before"]);
    }
    let absent = vec![named("new"), at(renewed("none", false, false), "/none")];
    assert_eq!(place.refused(absent).await, fault(VolumeFault::NotFound));
    assert_eq!(place.world.names().await, ["before"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_of_a_create_that_fails_serves_the_next_at_once() {
    let place = Place::new().await;
    place.says("true", vec![named("kept")]).await;
    // Often enough for a create to come while the process of the one before it is still ending.
    for round in 0..20 {
        let volumes = vec![named("kept"), at(named("other"), "/bin/x")];
        let refused = place.refused(volumes).await;
        assert_eq!(refused, fault(VolumeFault::MountPath), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_get_the_volume_that_one_of_them_makes() {
    let place = Place::new().await;
    let mut creates = JoinSet::new();
    for number in 0..6 {
        let script = format!("echo {number} >/v/{number}");
        let native = Arc::clone(&place.world.native);
        creates.spawn(async move { native.create(with(&script, vec![named("one")])).await });
    }
    while let Some(create) = creates.join_next().await {
        create.unwrap().unwrap();
    }
    let script = "until [ $(ls /v | wc -l) = 6 ]; do sleep 0.01; done; ls /v | tr '\\n' ' '";
    assert_eq!(place.says(script, vec![named("one")]).await, "0 1 2 3 4 5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_leaves_whole_volumes_and_no_half_ones() {
    let place = Place::new().await;
    let native = &place.world.native;
    let volumes = vec![named("kept"), at(renewed("owned", true, true), "/owned")];
    let script = "echo kept >/v/f; echo x >/owned/f; sync; sleep 1000";
    native.create(with(script, volumes)).await.unwrap();
    place
        .says(
            "until [ -s /v/f ]; do sleep 0.01; done",
            vec![named("kept")],
        )
        .await;
    let state = place.world.state.path().join("volumes");
    // What a launcher leaves that dies in the middle of making or removing one.
    for half in [".new-half/data", ".gone-1-1/data/deep"] {
        fs::create_dir_all(state.join(half)).unwrap();
    }
    let launcher = i32::try_from(native.launcher_pid()).unwrap();
    rustix::process::kill_process(Pid::from_raw(launcher).unwrap(), Signal::KILL).unwrap();
    let again = async {
        while native.launcher_pid() == u32::try_from(launcher).unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again)
        .await
        .expect("no launcher");
    assert_eq!(place.says("cat /v/f", vec![named("kept")]).await, "kept");
    assert_eq!(place.world.names().await, ["kept"]);
    let left: Vec<_> = fs::read_dir(&state).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_volume_is_made_and_mounted() {
    let place = Place::new().await;
    place
        .says("echo x >/v/f", vec![part(named("n"), "data/train")])
        .await;
    assert_eq!(
        place.says("cat /v/data/train/f", vec![named("n")]).await,
        "x"
    );
    let file = part(named("n"), "data/train/f");
    assert_eq!(place.says("cat /v", vec![file]).await, "x");
    let below = part(named("n"), "data/train/f/below");
    assert_eq!(
        place.refused(vec![below]).await,
        fault(VolumeFault::SubPath)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_without_volumes_sees_none() {
    let place = Place::new().await;
    place.says("true", vec![named("n")]).await;
    let (_, log) = place
        .world
        .run(
            "ls -d /v; grep -c image.ext4 /proc/self/mounts",
            Limits::default(),
        )
        .await;
    assert!(log.contains("No such file"), "{log}");
}
