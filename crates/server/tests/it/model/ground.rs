//! What the server of a model stands on: a fake, or real sandboxes.

use std::sync::Arc;

use barchan_runtime::image::Aliases;
use barchan_runtime::native::{Native, Settings};
use barchan_runtime::{EndReason, Runtime};
use barchan_testkit::guests;
use barchan_wire::id::SandboxId;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::world::{Set, World};

/// Waits for a code, and exits with it.
const ENTRYPOINT: &str = "while [ ! -s /tmp/code ]; do sleep 0.01; done; exit $(cat /tmp/code)";

/// What happens to sandboxes behind the server.
pub(super) enum Ground {
    Fake,
    Native(Box<Real>),
}

/// A native runtime of its own.
pub(super) struct Real {
    native: Arc<Native>,
    _state: TempDir,
    _task: JoinSet<()>,
}

impl Ground {
    pub(super) async fn native() -> Self {
        let state = tempfile::tempdir().unwrap();
        let settings = Settings {
            state: state.path().to_owned(),
            jail: guests::program("barchan-jail"),
            execd: guests::program("barchan-execd"),
            egress: None,
            blanks: 2,
            disk_bytes: 64 << 20,
            aliases: Aliases::default(),
            host_paths: None,
            devices: "/dev".into(),
        };
        let (native, listening) = Native::start(settings).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(listening);
        Self::Native(Box::new(Real {
            native,
            _state: state,
            _task: task,
        }))
    }

    /// A server on it.
    pub(super) async fn world(&self) -> World {
        let sandboxes = match self {
            Self::Fake => None,
            Self::Native(real) => Some(Arc::clone(&real.native) as Arc<dyn Runtime>),
        };
        let set = Set {
            sandboxes,
            ..Set::default()
        };
        World::with(&set).await
    }

    /// Whether its sandboxes can be paused to disk.
    pub(super) fn parks(&self) -> bool {
        match self {
            Self::Fake => true,
            Self::Native(real) => real.native.capabilities().pause_to_disk,
        }
    }

    /// What the sandboxes run.
    pub(super) fn entrypoint(&self) -> &'static [&'static str] {
        match self {
            Self::Fake => &["tail", "-f", "/dev/null"],
            Self::Native(_) => &["/bin/sh", "-c", ENTRYPOINT],
        }
    }

    /// Has an entrypoint exit. On real sandboxes that is a use, and a frozen one cannot.
    pub(super) async fn exit(&self, world: &World, id: &SandboxId, code: i32) {
        match self {
            Self::Fake => world.fake.end(id, EndReason::Exit(code)),
            Self::Native(_) => {
                let command = format!("echo {code} > /tmp/code");
                let call = world.inside(id, 44772, "POST", "/command").await;
                let body = json!({"command": command, "background": true});
                assert_eq!(call.json(&body).send().await.status, 200);
            }
        }
    }

    /// Whether entrypoints are reached through the server.
    pub(super) fn is_reached_as_callers_do(&self) -> bool {
        matches!(self, Self::Native(_))
    }

    /// Takes a sandbox away behind the server.
    pub(super) async fn vanish(&self, world: &World, id: &SandboxId) {
        match self {
            Self::Fake => world.fake.vanish(id),
            Self::Native(real) => real.native.delete(id).await.unwrap(),
        }
    }

    /// Has something be at work in a sandbox, and says whether it is.
    pub(super) fn set_busy(&self, world: &World, id: &SandboxId, is_busy: bool) -> bool {
        match self {
            Self::Fake => world.fake.set_busy(id, is_busy),
            Self::Native(_) => return false,
        }
        is_busy
    }

    /// Waits until it has no sandbox any more.
    pub(super) async fn await_nothing_left(&self, world: &World) {
        match self {
            Self::Fake => world.await_nothing_left().await,
            Self::Native(real) => {
                crate::world::until("all sandboxes to be removed", async || {
                    real.native.list().await.unwrap().is_empty()
                })
                .await;
            }
        }
    }

    pub(super) async fn close(self) {
        if let Self::Native(real) = self {
            real.native.close().await.unwrap();
        }
    }
}
