//! Sandboxes on this host, without an engine: image store, launcher, and the words between them.

mod build;
mod line;
mod start;

pub mod doctor;

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use barchan_jail::guest::Boot;
use barchan_jail::proto::{self, Answer, Failure, FailureKind, Hello, IdMode, Request, Status};
use barchan_jail::spec::{self, Network, Spec};
use barchan_wire::id::SandboxId;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::image::{Aliases, ImageError, ResolvedImage, Store};
use crate::{
    Capabilities, EXECD_PORT, EndReason, ErrorKind, Observed, Phase, Plan, Runtime, RuntimeError,
    Upstream,
};
use line::Line;

/// How the native runtime is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The state directory.
    pub state: PathBuf,
    /// The launcher's program.
    pub jail: PathBuf,
    /// The in-sandbox daemon's program.
    pub execd: PathBuf,
    /// Spare processes to keep, so that a create only mounts and execs.
    pub blanks: usize,
    /// Size of a sandbox's writable layer where a plan names none, in bytes.
    pub disk_bytes: u64,
    /// Names that stand for local images.
    pub aliases: Aliases,
}

/// Events that a slow watcher may miss before it must list.
const EVENTS_MAX: usize = 4096;

/// Where a sandbox's commands start.
const WORKSPACE: &str = "/workspace";

/// The native runtime. It holds what can be rebuilt from the launcher's list, and nothing else.
#[derive(Debug)]
pub struct Native {
    settings: Settings,
    store: Arc<Store>,
    line: Line,
    hello: Hello,
    /// The folder of the sandboxes' sockets, open, so that a path of any length can be reached.
    run: OwnedFd,
    /// The sandboxes believed to live, for the day the launcher dies.
    living: Mutex<HashMap<SandboxId, Observed>>,
    events: broadcast::Sender<Observed>,
    /// The launcher was told to go: its end is no accident, and it gets no successor.
    closing: AtomicBool,
}

/// What the launcher keeps for us with each sandbox.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    image_digest: String,
}

impl Native {
    /// Opens the image store, finds the launcher of the state directory or starts one, and takes
    /// over what it runs. The future is the runtime's own task: it hears the launcher and starts
    /// another one if it dies; the caller runs it for as long as the runtime lives.
    ///
    /// # Errors
    /// When the host lacks what a launcher needs; the message says what and how to get it.
    pub async fn start(
        settings: Settings,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + Send), RuntimeError> {
        let store =
            Store::open(&settings.state.join("images")).map_err(|error| from_image(&error))?;
        let (line, hello, mut heard) = start::connect(&settings).await?;
        let run = std::fs::File::open(settings.state.join("run"))
            .map_err(|error| internal(&format!("open the run directory: {error}")))?;
        let native = Arc::new(Self {
            settings,
            store: Arc::new(store),
            line,
            hello,
            run: run.into(),
            living: Mutex::default(),
            events: broadcast::Sender::new(EVENTS_MAX),
            closing: AtomicBool::new(false),
        });
        for observed in heard.during(native.list()).await? {
            native.remember(&observed);
        }
        let listening = Arc::clone(&native).listen(heard);
        Ok((native, listening))
    }

    /// The local image store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The launcher's process.
    #[must_use]
    pub fn launcher_pid(&self) -> u32 {
        self.hello.pid
    }

    /// Ends every sandbox, and the launcher with all its traces.
    ///
    /// # Errors
    /// When the launcher does not answer.
    pub async fn close(&self) -> Result<(), RuntimeError> {
        self.closing.store(true, Ordering::Relaxed);
        self.ask(Request::Leave).await.map(|_| ())
    }

    /// Passes events on, and replaces a launcher that died; its sandboxes died with it.
    async fn listen(self: Arc<Self>, mut heard: line::Heard) {
        loop {
            while let Some(status) = heard.next().await {
                if let Some(observed) = observed(&status) {
                    self.remember(&observed);
                    let _ = self.events.send(observed);
                }
            }
            if self.closing.load(Ordering::Relaxed) {
                return;
            }
            self.bury_all();
            heard = loop {
                match start::reconnect(&self.settings, &self.line).await {
                    Ok(heard) => break heard,
                    Err(error) => tracing::error!(%error, "no launcher; trying again"),
                }
                tokio::time::sleep(start::RETRY).await;
            };
        }
    }

    fn bury_all(&self) {
        let Ok(mut living) = self.living.lock() else {
            return;
        };
        tracing::error!(
            sandboxes = living.len(),
            "the launcher died, and its sandboxes with it"
        );
        for (_, observed) in living.drain() {
            let phase = Phase::Ended(EndReason::LauncherLost);
            let _ = self.events.send(Observed { phase, ..observed });
        }
    }

    fn remember(&self, observed: &Observed) {
        let Ok(mut living) = self.living.lock() else {
            return;
        };
        match observed.phase {
            Phase::Ended(_) => living.remove(&observed.id),
            Phase::Running | Phase::Paused => living.insert(observed.id.clone(), observed.clone()),
        };
    }

    async fn ask(&self, request: Request) -> Result<Answer, RuntimeError> {
        match self.line.call(request).await? {
            Answer::Failed(failure) => Err(from_failure(failure)),
            answer => Ok(answer),
        }
    }

    fn spec(&self, plan: Plan, image: ResolvedImage) -> Result<Spec, RuntimeError> {
        let note = Note {
            image_digest: image.digest.clone(),
        };
        let mut env = image.env;
        env.insert("PATH".to_owned(), image.path);
        env.insert("OPENSANDBOX_ID".to_owned(), plan.id.to_string());
        env.extend(plan.env);
        Ok(Spec {
            id: plan.id.to_string(),
            layers: self.beneath_state(&image.layers)?,
            binds: image.binds.into_iter().map(to_bind).collect(),
            boot: Boot {
                id: plan.id.to_string(),
                entrypoint: plan.entrypoint,
                env,
                cwd: WORKSPACE.to_owned(),
                memory_bytes: plan.limits.memory_bytes,
                cpu_millis: plan.limits.cpu_millis,
            },
            limits: spec::Limits {
                cpu_millis: plan.limits.cpu_millis,
                memory_bytes: plan.limits.memory_bytes,
                pids: plan.limits.pids,
                disk_bytes: plan.limits.disk_bytes,
            },
            network: Network::None,
            upper: None,
            note: serde_json::to_string(&note).unwrap_or_default(),
        })
    }

    /// The launcher opens only what lies beneath the state directory.
    fn beneath_state(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, RuntimeError> {
        let inside = |path: &PathBuf| path.strip_prefix(&self.settings.state).map(PathBuf::from);
        paths
            .iter()
            .map(inside)
            .collect::<Result<_, _>>()
            .map_err(|_| internal("a layer of the image lies outside the state directory"))
    }

    async fn status(&self, request: Request) -> Result<Observed, RuntimeError> {
        match self.ask(request).await? {
            Answer::Sandbox(status) => {
                observed(&status).ok_or_else(|| internal("the launcher answered for no sandbox"))
            }
            other => Err(internal(&format!("the launcher answered {other:?}"))),
        }
    }
}

#[async_trait]
impl Runtime for Native {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            runtime: "native",
            limit_cpu: self.hello.cpu,
            limit_memory: self.hello.memory,
            limit_pids: self.hello.pids,
            limit_disk: self.hello.disk,
            pause: self.hello.pause,
        }
    }

    async fn create(&self, plan: Plan) -> Result<Observed, RuntimeError> {
        let image = self
            .store
            .resolve(&plan.image, &self.settings.aliases)
            .map_err(|error| from_image(&error))?;
        let spec = self.spec(plan, image)?;
        let observed = self.status(Request::Create(Box::new(spec))).await?;
        self.remember(&observed);
        Ok(observed)
    }

    async fn observe(&self, id: &SandboxId) -> Result<Option<Observed>, RuntimeError> {
        Ok(self
            .list()
            .await?
            .into_iter()
            .find(|observed| observed.id == *id))
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        match self.ask(Request::List).await? {
            Answer::Sandboxes(all) => Ok(all.iter().filter_map(observed).collect()),
            other => Err(internal(&format!("the launcher answered {other:?}"))),
        }
    }

    async fn pause(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.status(Request::Pause(id.to_string()))
            .await
            .map(|_| ())
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.status(Request::Resume(id.to_string()))
            .await
            .map(|_| ())
    }

    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.ask(Request::Delete(id.to_string())).await?;
        if let Ok(mut living) = self.living.lock() {
            living.remove(id);
        }
        Ok(())
    }

    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError> {
        if !self
            .living
            .lock()
            .is_ok_and(|living| living.contains_key(id))
        {
            return Err(RuntimeError::new(
                ErrorKind::NotFound,
                format!("no living sandbox {id}"),
            ));
        }
        // Through the open folder, because a socket's address holds no more than 107 bytes.
        let folder = self.run.as_raw_fd();
        Ok(Upstream {
            socket: PathBuf::from(format!("/proc/self/fd/{folder}/{id}/execd.sock")),
            prefix: if port == EXECD_PORT {
                String::new()
            } else {
                format!("/proxy/{port}")
            },
        })
    }

    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError> {
        match self.ask(Request::Log(id.to_string())).await? {
            Answer::Log(text) => Ok(text.into_bytes()),
            other => Err(internal(&format!("the launcher answered {other:?}"))),
        }
    }

    fn watch(&self) -> broadcast::Receiver<Observed> {
        self.events.subscribe()
    }
}

fn to_bind(bind: crate::image::Bind) -> spec::Bind {
    spec::Bind {
        source: bind.source,
        target: bind.target,
    }
}

/// The launcher's view in the runtime's words; `None` for a build, which is nobody's sandbox.
fn observed(status: &Status) -> Option<Observed> {
    let note: Note = serde_json::from_str(&status.note).ok()?;
    Some(Observed {
        id: status.id.parse().ok()?,
        phase: match status.phase {
            proto::Phase::Running => Phase::Running,
            proto::Phase::Paused => Phase::Paused,
            proto::Phase::Exited(code) => Phase::Ended(EndReason::Exit(code)),
            proto::Phase::Signalled(_) => Phase::Ended(EndReason::DaemonLost),
            proto::Phase::OutOfMemory => Phase::Ended(EndReason::Oom),
        },
        unenforced: status.unenforced.clone(),
        image_digest: note.image_digest,
    })
}

fn from_failure(failure: Failure) -> RuntimeError {
    let kind = match failure.kind {
        FailureKind::NotFound => ErrorKind::NotFound,
        FailureKind::Conflict => ErrorKind::Conflict,
        FailureKind::Unsupported => ErrorKind::Unsupported,
        FailureKind::Start => ErrorKind::StartFailed,
        FailureKind::Invalid => ErrorKind::Internal,
    };
    RuntimeError::new(kind, failure.message)
}

fn from_image(error: &ImageError) -> RuntimeError {
    let kind = match error {
        ImageError::Unknown { .. } => ErrorKind::UnknownImage,
        _ => ErrorKind::Internal,
    };
    RuntimeError::new(kind, error.to_string())
}

fn internal(words: &str) -> RuntimeError {
    RuntimeError::new(ErrorKind::Internal, words)
}

/// Whether sandboxes of this launcher have ids of their own.
fn has_own_ranges(hello: &Hello) -> bool {
    hello.ids == IdMode::OwnRange
}
