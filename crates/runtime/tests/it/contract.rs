//! What every runtime promises, held against each of a list of runtimes.

mod pauses;

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::fake::Fake;
use barchan_runtime::remote::{self, Remote, Served};
use barchan_runtime::{
    ArchiveFault, EXECD_PORT, EndReason, ErrorKind, ExportOrder, ImportOrder, LOG_BYTES_MAX,
    Limits, Observed, Pause, Phase, Plan, Runtime,
};
use barchan_wire::id::SandboxId;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::native::snapshots::archives;
use crate::native::world as native;

/// Longest time for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime under test and what has to live as long as it.
struct World {
    name: &'static str,
    runtime: Arc<dyn Runtime>,
    /// An image with a shell.
    image: &'static str,
    _kept: Box<dyn Any>,
}

/// Every runtime that keeps the contract.
async fn worlds() -> Vec<World> {
    let home = tempfile::tempdir().unwrap();
    let fake = Arc::new(Fake::new(home.path()));
    let native = native::World::new().await;
    let runtime: Arc<dyn Runtime> = native.native.clone();
    let (folder, sockets) = watch::channel(home.path().to_owned());
    let (far_fake, fake_tasks) = afar(fake.clone(), sockets).await;
    let (far_native, native_tasks) = afar(runtime.clone(), native.native.sockets()).await;
    // What serves a runtime ends before it.
    let world = |name, runtime, kept: Box<dyn Any>| World {
        name,
        runtime,
        image: "host",
        _kept: kept,
    };
    vec![
        world("fake in another process", far_fake, Box::new(fake_tasks)),
        world(
            "native in another process",
            far_native,
            Box::new(native_tasks),
        ),
        world("fake", fake, Box::new((home, folder))),
        world("native", runtime, Box::new(native)),
    ]
}

/// The same runtime as a server without privileges has it.
async fn afar(
    runtime: Arc<dyn Runtime>,
    sockets: watch::Receiver<PathBuf>,
) -> (Arc<dyn Runtime>, JoinSet<()>) {
    let (near, far) = remote::pair().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let start = move || {
            let (runtime, sockets) = (Arc::clone(&runtime), sockets.clone());
            async move { Ok(Served { runtime, sockets }) }
        };
        remote::serve(near, start, || Ok(String::new()))
            .await
            .unwrap();
    });
    let (remote, hearing) = Remote::new(far).unwrap();
    tasks.spawn(hearing);
    remote.start().await.unwrap();
    (remote, tasks)
}

impl World {
    fn plan(&self, entrypoint: &[&str]) -> Plan {
        Plan {
            id: Uuid::new_v4().to_string().parse().unwrap(),
            image: self.image.to_owned(),
            snapshot: None,
            from: None,
            entrypoint: entrypoint.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            pre_start: None,
            periodic: Vec::new(),
            volumes: Vec::new(),
            gpus: None,
            trust: None,
        }
    }

    /// A sandbox that runs until it is told to end.
    async fn running(&self) -> SandboxId {
        let plan = self.plan(&["tail", "-f", "/dev/null"]);
        let id = plan.id.clone();
        let observed = self.runtime.create(plan).await.unwrap();
        assert_eq!(
            (&observed.id, &observed.phase),
            (&id, &Phase::Running),
            "{}",
            self.name
        );
        assert!(observed.image_digest.starts_with("sha256:"), "{observed:?}");
        id
    }

    /// `times`, or 0 where this host cannot pause.
    fn pauses(&self, times: usize) -> usize {
        if self.runtime.capabilities().pause {
            times
        } else {
            0
        }
    }

    async fn phase(&self, id: &SandboxId) -> Option<Phase> {
        self.runtime
            .observe(id)
            .await
            .unwrap()
            .map(|observed| observed.phase)
    }

    /// Waits for the end that a watcher is told of.
    async fn end_of(
        &self,
        changes: &mut tokio::sync::broadcast::Receiver<Observed>,
        id: &SandboxId,
    ) -> EndReason {
        let seen = async {
            loop {
                match changes.recv().await.unwrap() {
                    Observed {
                        id: of,
                        phase: Phase::Ended(reason),
                        ..
                    } if of == *id => {
                        return reason;
                    }
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, seen)
            .await
            .expect("an end that nobody is told of")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_created_sandbox_accepts_connections_at_once() {
    for world in worlds().await {
        let id = world.running().await;
        let upstream = world.runtime.endpoint(&id, EXECD_PORT).await.unwrap();
        assert_eq!(upstream.prefix, "");
        let mut stream = UnixStream::connect(&upstream.socket).await.unwrap();
        stream
            .write_all(b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 15];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer));
        read.await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK", "{}", world.name);
        let other = world.runtime.endpoint(&id, 8080).await.unwrap();
        assert_eq!(
            (other.socket, other.prefix.as_str()),
            (upstream.socket, "/proxy/8080")
        );
        world.runtime.delete(&id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_verbs_change_nothing() {
    for world in worlds().await {
        let plan = world.plan(&["tail", "-f", "/dev/null"]);
        let id = plan.id.clone();
        let first = world.runtime.create(plan.clone()).await.unwrap();
        assert_eq!(world.runtime.create(plan).await.unwrap(), first);
        assert_eq!(world.runtime.list().await.unwrap(), [first]);
        for _ in 0..world.pauses(2) {
            world.runtime.pause(&id, Pause::Freeze).await.unwrap();
            assert_eq!(world.phase(&id).await, Some(Phase::Paused));
        }
        for _ in 0..world.pauses(2) {
            world.runtime.resume(&id).await.unwrap();
            assert_eq!(world.phase(&id).await, Some(Phase::Running));
        }
        for _ in 0..2 {
            world.runtime.delete(&id).await.unwrap();
            assert_eq!(world.phase(&id).await, None);
        }
        assert_eq!(world.runtime.list().await.unwrap(), [], "{}", world.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_can_be_deleted() {
    for world in worlds().await {
        let id = world.running().await;
        if world.pauses(1) == 0 {
            let refused = world.runtime.pause(&id, Pause::Freeze).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Unsupported, "{}", world.name);
        } else {
            world.runtime.pause(&id, Pause::Freeze).await.unwrap();
        }
        world.runtime.delete(&id).await.unwrap();
        assert_eq!(world.phase(&id).await, None, "{}", world.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_told_kept_and_explained() {
    for world in worlds().await {
        let mut changes = world.runtime.watch();
        let plan = world.plan(&["/bin/sh", "-c", "echo boom; exit 3"]);
        let id = plan.id.clone();
        world.runtime.create(plan).await.unwrap();
        assert_eq!(
            world.end_of(&mut changes, &id).await,
            EndReason::Exit(3),
            "{}",
            world.name
        );
        assert_eq!(
            world.phase(&id).await,
            Some(Phase::Ended(EndReason::Exit(3)))
        );
        let log = world.runtime.logs(&id).await.unwrap();
        assert_eq!(log, b"boom\n", "{}", world.name);
        assert!(log.len() <= LOG_BYTES_MAX);
        let note = String::new();
        for how in [Pause::Freeze, Pause::ToDisk { note }] {
            let pause = world.runtime.pause(&id, how).await.unwrap_err();
            assert_eq!(pause.kind, ErrorKind::Conflict);
        }
        world.runtime.delete(&id).await.unwrap();
        assert_eq!(world.phase(&id).await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_image_is_named_and_leaves_nothing() {
    for world in worlds().await {
        let mut plan = world.plan(&["true"]);
        plan.image = "no-such-image".to_owned();
        let error = world.runtime.create(plan).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownImage, "{}", world.name);
        assert!(error.message.contains("no-such-image"), "{error}");
        assert_eq!(world.runtime.list().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_sandbox_is_no_sandbox() {
    for world in worlds().await {
        let id: SandboxId = Uuid::new_v4().to_string().parse().unwrap();
        let runtime = &world.runtime;
        assert_eq!(runtime.observe(&id).await.unwrap(), None);
        for error in [
            runtime.pause(&id, Pause::Freeze).await.unwrap_err(),
            runtime.resume(&id).await.unwrap_err(),
            runtime.endpoint(&id, 80).await.unwrap_err(),
            runtime.logs(&id).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::NotFound, "{}: {error}", world.name);
        }
        runtime.delete(&id).await.unwrap();
    }
}

fn order() -> ImportOrder {
    ImportOrder {
        snapshot: Uuid::new_v4().to_string().parse().unwrap(),
        bytes_max: 1 << 20,
        wait: PATIENCE,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_can_be_exported() {
    for world in worlds().await {
        let archive = match world.name.starts_with("fake") {
            true => b"fake image other".to_vec(),
            false => archives::Image::of(&[archives::small()]).packed(),
        };
        let import = order();
        let pieces: Vec<_> = archive
            .chunks(1000)
            .map(|it| Ok(Bytes::copy_from_slice(it)))
            .collect();
        let pieces = stream::iter(pieces).boxed();
        let imported = world.runtime.import_snapshot(import.clone(), pieces).await;
        assert!(imported.unwrap().bytes > 0, "{}", world.name);
        let order = ExportOrder {
            snapshot: import.snapshot.clone(),
            created: "2001-02-03T04:05:06Z".to_owned(),
            without_host: false,
            wait: PATIENCE,
        };
        let mut export = world.runtime.export_snapshot(order).await.unwrap();
        let mut bytes = 0;
        while let Some(piece) = export.pieces.recv().await {
            bytes += piece.len() as u64;
        }
        assert_eq!(bytes, export.bytes, "{}", world.name);
        world
            .runtime
            .delete_snapshot(&import.snapshot)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_that_are_none_or_break_off_are_refused() {
    for world in worlds().await {
        for (last, expected) in [
            (Ok(Bytes::from_static(b"nonsense")), ArchiveFault::Invalid),
            (Err(io::Error::other("reset")), ArchiveFault::BrokenOff),
            (Ok(Bytes::from(vec![7; 100 << 20])), ArchiveFault::TooLarge),
        ] {
            let pieces = stream::iter([Ok(Bytes::from_static(b"some")), last]).boxed();
            let error = world.runtime.import_snapshot(order(), pieces).await;
            let kind = error.unwrap_err().kind;
            assert_eq!(kind, ErrorKind::Archive(expected), "{}", world.name);
        }
        let order = ExportOrder {
            snapshot: order().snapshot,
            created: String::new(),
            without_host: false,
            wait: PATIENCE,
        };
        let error = world.runtime.export_snapshot(order).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownSnapshot, "{}", world.name);
    }
}
