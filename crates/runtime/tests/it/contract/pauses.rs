//! Pauses to disk.

use barchan_runtime::{EXECD_PORT, ErrorKind, Pause, Phase};
use tokio::net::UnixStream;

use super::worlds;

/// Paused to disk a sandbox has one layer more and no way in, and it begins anew when resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_paused_to_disk_and_resumed() {
    for world in worlds().await {
        let (id, runtime) = (world.running().await, &world.runtime);
        let to_disk = || Pause::ToDisk {
            note: "why".to_owned(),
        };
        if !runtime.capabilities().pause_to_disk {
            let refused = runtime.pause(&id, to_disk()).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Unsupported, "{}", world.name);
            runtime.delete(&id).await.unwrap();
            continue;
        }
        for layer in 1..3 {
            for _ in 0..2 {
                runtime.pause(&id, to_disk()).await.unwrap();
                assert_eq!(
                    world.phase(&id).await,
                    Some(Phase::Parked),
                    "{}",
                    world.name
                );
            }
            let layers = runtime.layers(&id).await.unwrap();
            let last = layers.last().unwrap();
            assert_eq!((layers.len(), last.number), (layer, layer as u32));
            assert_eq!(last.note, "why");
            let freeze = runtime.pause(&id, Pause::Freeze).await.unwrap_err();
            assert_eq!(freeze.kind, ErrorKind::Conflict, "{}", world.name);
            let upstream = runtime.endpoint(&id, EXECD_PORT).await.unwrap();
            assert!(UnixStream::connect(&upstream.socket).await.is_err());
            for _ in 0..2 {
                runtime.resume(&id).await.unwrap();
                assert_eq!(world.phase(&id).await, Some(Phase::Running));
            }
            let upstream = runtime.endpoint(&id, EXECD_PORT).await.unwrap();
            UnixStream::connect(&upstream.socket).await.unwrap();
        }
        runtime.pause(&id, to_disk()).await.unwrap();
        runtime.delete(&id).await.unwrap();
        assert_eq!(world.phase(&id).await, None, "{}", world.name);
        let unknown = runtime.pause(&id, to_disk()).await.unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::NotFound, "{}", world.name);
    }
}
