//! Sandboxes whose disk is full.

use barchan_runtime::{ErrorKind, Limits, Pause, Phase, Runtime};
use rustix::process::{Pid, Signal, kill_process};

use super::is_able;
use crate::native::traces::processes_beside;
use crate::native::wedge::daemon_of;
use crate::native::world::{World, plan};

/// Fills its disk in one way, and makes room when it is told to.
const BYTES: &str = "trap 'rm /big; echo freed' TERM; head -c 200M /dev/zero >/big; \
    echo full; while :; do sleep 1000 & wait; done";
const ENTRIES: &str = "trap 'rm -r /many; echo freed' TERM; mkdir /many; cd /many; \
    seq 100000 | xargs touch 2>/dev/null; cd /; echo full; while :; do sleep 1000 & wait; done";

/// Without room for the layer that it would write to it could never be resumed.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_room_for_another_layer_is_not_paused_to_disk() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let to_disk = || Pause::ToDisk {
        note: String::new(),
    };
    for script in [BYTES, ENTRIES] {
        let limits = Limits {
            disk_bytes: Some(32 << 20),
            ..Limits::default()
        };
        let plan = plan("host", &["/bin/sh", "-c", script], limits);
        let id = plan.id.clone();
        world.native.create(plan).await.unwrap();
        world.told(&id, "full").await;
        let refused = world.native.pause(&id, to_disk()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::LayerFailed, "{refused}");
        assert!(refused.message.contains("disk is full"), "{refused}");
        let seen = world.native.observe(&id).await.unwrap().unwrap();
        assert_eq!(seen.phase, Phase::Running);
        let daemon = daemon_of(&world, &id).await;
        let processes = processes_beside(daemon.as_raw_nonzero().get().unsigned_abs());
        for process in processes {
            let process = Pid::from_raw(process.cast_signed()).unwrap();
            if process != daemon {
                kill_process(process, Signal::TERM).unwrap();
            }
        }
        world.told(&id, "freed").await;
        world.native.pause(&id, to_disk()).await.unwrap();
        world.native.resume(&id).await.unwrap();
        world.native.delete(&id).await.unwrap();
    }
}
