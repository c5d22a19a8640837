//! Sandboxes on this host, without an engine: image store, launcher, and the words between them.

mod build;
mod layers;
mod line;
mod living;
mod pulse;
mod settings;
mod snapshots;
mod spec;
mod start;
mod transfer;
mod volumes;
mod warm;
mod words;

pub mod doctor;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use barchan_jail::proto::{Answer, Hello, IdMode, Message, ParkOrder, Request};
use barchan_wire::id::{SandboxId, SnapshotId};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::image::Store;
use crate::{
    Capabilities, CompareOrder, Comparison, EGRESS_SOCKET, EXECD_PORT, EndReason, ErrorKind,
    Export, ExportOrder, ImportOrder, Imported, Layer, NamedVolume, Observed, Pause, Phase, Pieces,
    Plan, Runtime, RuntimeError, SealOrder, Sealed, Shares, Snapshot, SnapshotOrder, Upstream,
};
use line::Line;
use living::Living;
pub use settings::Settings;
use words::{from_failure, from_image, from_volume, internal, observed, to_bind};

/// Events that a slow watcher may miss before it must list.
const EVENTS_MAX: usize = 4096;

/// The native runtime. It holds what can be rebuilt from the launcher's list, and nothing else.
#[derive(Debug)]
pub struct Native {
    settings: Settings,
    store: Arc<Store>,
    line: Line,
    /// What the launcher said of itself.
    hello: Mutex<Hello>,
    /// Where the launcher of the moment has the sandboxes' sockets.
    sockets: watch::Sender<PathBuf>,
    living: Living,
    /// Places of snapshots that are packed.
    exports: Arc<Semaphore>,
    /// Places of layers that are compared.
    comparisons: Shares,
    events: broadcast::Sender<Observed>,
    /// The launcher was told to go: its end is no accident, and it gets no successor.
    closing: AtomicBool,
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
        volumes::warn_of_links(settings.host_paths.as_deref().unwrap_or_default());
        let line = Line::default();
        let (hello, mut heard) = start::connect(&settings, &line, |_| {}).await?;
        let native = Arc::new(Self {
            settings,
            store: Arc::new(store),
            line,
            sockets: watch::Sender::new(hello.sockets.clone()),
            hello: Mutex::new(hello),
            living: Living::default(),
            exports: Arc::new(Semaphore::new(transfer::EXPORTS_MAX)),
            comparisons: Shares::new(transfer::COMPARISONS_MAX, transfer::COMPARISONS_EACH),
            events: broadcast::Sender::new(EVENTS_MAX),
            closing: AtomicBool::new(false),
        });
        for observed in heard.during(native.list(), |_| {}).await? {
            native.living.learn(&observed);
        }
        let (listener, asker) = (Arc::clone(&native), Arc::clone(&native));
        let listening = async move {
            tokio::select! {
                () = listener.listen(heard) => {}
                () = pulse::watch(&asker) => {}
            }
        };
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
        self.hello().pid
    }

    /// The folder of the sandboxes' sockets, which is another one when the launcher is.
    #[must_use]
    pub fn sockets(&self) -> watch::Receiver<PathBuf> {
        self.sockets.subscribe()
    }

    fn hello(&self) -> MutexGuard<'_, Hello> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner)
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
            while let Some(message) = heard.next().await {
                self.learn(&message);
                heard.deliver(message);
            }
            if self.closing.load(Ordering::Relaxed) {
                return;
            }
            self.bury_all();
            heard = loop {
                let learn = |message: &Message| self.learn(message);
                match start::connect(&self.settings, &self.line, learn).await {
                    Ok((hello, heard)) => {
                        self.sockets.send_replace(hello.sockets.clone());
                        *self.hello() = hello;
                        break heard;
                    }
                    Err(error) => tracing::error!(%error, "no launcher; trying again"),
                }
                tokio::time::sleep(start::RETRY).await;
            };
        }
    }

    /// Takes in what the launcher says of a sandbox, in the order in which it is said: its end may
    /// follow at once on the answer that it was made.
    fn learn(&self, message: &Message) {
        let Answer::Sandbox(status) = &message.answer else {
            return;
        };
        let Some(observed) = observed(status) else {
            return;
        };
        self.living.learn(&observed);
        if message.seq == 0 {
            let _ = self.events.send(observed);
        }
    }

    /// The socket of a sandbox's daemon.
    fn socket(&self, id: &SandboxId) -> PathBuf {
        self.sockets.borrow().join(format!("{id}.sock"))
    }

    fn bury_all(&self) {
        let lost = self.living.take_all();
        tracing::error!(
            sandboxes = lost.len(),
            "the launcher died, and its sandboxes with it"
        );
        for observed in lost {
            let phase = Phase::Ended(EndReason::LauncherLost);
            let _ = self.events.send(Observed { phase, ..observed });
        }
    }

    async fn ask(&self, request: Request) -> Result<Answer, RuntimeError> {
        match self.line.call(request).await? {
            Answer::Failed(failure) => Err(from_failure(failure)),
            answer => Ok(answer),
        }
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
        let hello = self.hello();
        // They lie on disks of their own, and are sealed while a sandbox stands still.
        let layers = hello.pause && hello.ids == IdMode::OwnRange;
        Capabilities {
            runtime: "native".into(),
            limit_cpu: hello.cpu,
            limit_memory: hello.memory,
            limit_pids: hello.pids,
            limit_disk: hello.disk,
            pause: hello.pause,
            pause_to_disk: layers,
            // It needs a sandbox to stand still.
            snapshot: hello.pause,
            limit_volume: hello.volume,
            layers,
            gpus: hello.gpus,
            network: hello.no_way_out.is_none(),
        }
    }

    async fn create(&self, plan: Plan) -> Result<Observed, RuntimeError> {
        let (image, saved) = self.foundation(&plan)?;
        let spec = self.spec(plan, image, saved)?;
        self.status(Request::Create(Box::new(spec))).await
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

    async fn pause(&self, id: &SandboxId, how: Pause) -> Result<(), RuntimeError> {
        let sandbox = id.to_string();
        let request = match how {
            Pause::Freeze => Request::Pause(sandbox),
            Pause::ToDisk { note } => Request::Park(ParkOrder { sandbox, note }),
        };
        self.status(request).await.map(|_| ())
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.status(Request::Resume(id.to_string()))
            .await
            .map(|_| ())
    }

    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.ask(Request::Delete(id.to_string())).await?;
        self.living.forget(id);
        Ok(())
    }

    async fn warm(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let warmed = warm::up(&self.socket(id)).await;
        warmed.map_err(|error| {
            let message = format!("the daemon of sandbox {id} runs no command: {error}");
            RuntimeError::new(ErrorKind::Unavailable, message)
        })
    }

    async fn is_busy(&self, id: &SandboxId) -> Result<bool, RuntimeError> {
        let asked = pulse::is_busy(&self.socket(id)).await;
        asked.map_err(|error| {
            let message = format!("the daemon of sandbox {id} does not say what it does: {error}");
            RuntimeError::new(ErrorKind::Unavailable, message)
        })
    }

    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError> {
        if !self.living.knows(id) {
            return Err(RuntimeError::new(
                ErrorKind::NotFound,
                format!("no living sandbox {id}"),
            ));
        }
        Ok(Upstream {
            socket: self.socket(id),
            prefix: if port == EXECD_PORT {
                String::new()
            } else {
                format!("/proxy/{port}")
            },
        })
    }

    fn egress(&self) -> Option<PathBuf> {
        let hello = self.hello();
        let has_way_out = hello.no_way_out.is_none();
        has_way_out.then(|| hello.sockets.join(EGRESS_SOCKET))
    }

    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError> {
        match self.ask(Request::Log(id.to_string())).await? {
            Answer::Log(text) => Ok(text.into_bytes()),
            other => Err(internal(&format!("the launcher answered {other:?}"))),
        }
    }

    async fn volumes(&self) -> Result<Vec<NamedVolume>, RuntimeError> {
        match self.ask(Request::Volumes).await? {
            Answer::Volumes(all) => Ok(all.into_iter().map(from_volume).collect()),
            other => Err(internal(&format!("the launcher answered {other:?}"))),
        }
    }

    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        let name = name.to_owned();
        self.ask(Request::RemoveVolume(name)).await.map(|_| ())
    }

    async fn snapshot(&self, order: SnapshotOrder) -> Result<Snapshot, RuntimeError> {
        self.take_snapshot(order).await
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotId>, RuntimeError> {
        self.store.snapshots().map_err(|error| from_image(&error))
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), RuntimeError> {
        let request = Request::RemoveSnapshot(id.to_string());
        self.ask(request).await.map(|_| ())
    }

    async fn export_snapshot(&self, order: ExportOrder) -> Result<Export, RuntimeError> {
        self.export(order).await
    }

    async fn import_snapshot(
        &self,
        order: ImportOrder,
        archive: Pieces,
    ) -> Result<Imported, RuntimeError> {
        self.import(order, archive).await
    }

    async fn seal(&self, order: SealOrder) -> Result<Sealed, RuntimeError> {
        self.seal_layer(order).await
    }

    async fn layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError> {
        self.list_layers(id).await
    }

    async fn compare(&self, order: CompareOrder) -> Result<Comparison, RuntimeError> {
        self.compare_layers(order).await
    }

    async fn undo(&self, id: &SandboxId, layer: u32) -> Result<Observed, RuntimeError> {
        self.undo_to(id, layer).await
    }

    async fn forget_layers(&self, id: &SandboxId, layers: &[u32]) -> Result<(), RuntimeError> {
        self.forget(id, layers).await
    }

    fn watch(&self) -> broadcast::Receiver<Observed> {
        self.events.subscribe()
    }
}
