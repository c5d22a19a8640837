//! A runtime in another process of this program: the server, which strangers talk to, runs as a
//! user without rights, and the keeper that started it carries out what it asks for.
//!
//! What a server could make the keeper do is what the [`Runtime`] trait offers and nothing else.
//! The ways into sandboxes do not lead through the keeper: it hands over the folder of their
//! sockets as a descriptor.

mod archives;
mod channel;
mod living;
mod serve;
mod streams;
mod waits;
mod words;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use barchan_wire::id::{SandboxId, SnapshotId};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinSet;

use crate::{
    Capabilities, CompareOrder, Comparison, EGRESS_SOCKET, EXECD_PORT, ErrorKind, Export,
    ExportOrder, ImportOrder, Imported, Layer, NamedVolume, Observed, Pause, Pieces, Plan, Runtime,
    RuntimeError, SealOrder, Sealed, Snapshot, SnapshotOrder, Upstream,
};
pub use channel::pair;
use channel::{Receiver, Sender};
use living::Living;
pub use serve::{Served, serve};
use waits::Waits;
use words::{Ask, Call, Message, Said};

/// How many folders of sockets are open: that of the launcher, and of those that died last.
const FOLDERS_MAX: usize = 8;
/// Events that a slow watcher may miss before it must list.
const EVENTS_MAX: usize = 4096;

/// The unprivileged side.
pub struct Remote {
    sender: Sender,
    next: AtomicU64,
    waiting: Mutex<Option<Waiting>>,
    standing: Mutex<Standing>,
    living: Living,
    events: broadcast::Sender<Observed>,
    /// What brings archives here.
    archives: Mutex<JoinSet<()>>,
}

type Answer = Result<Said, RuntimeError>;
/// An answer, and the descriptors that came with it.
type Given = (Said, VecDeque<OwnedFd>);
type Waiting = HashMap<u64, oneshot::Sender<Result<Given, RuntimeError>>>;

/// What the keeper said last of itself.
#[derive(Debug, Default)]
struct Standing {
    capabilities: Capabilities,
    /// The folders of sockets, the last one in use. Earlier ones stay open for a while, because a
    /// path through a descriptor that another file got since would lead somewhere else.
    sockets: VecDeque<OwnedFd>,
}

impl Remote {
    /// Takes the server's end of a channel. The future hears the keeper, and ends when it is gone;
    /// the caller runs it for as long as the runtime is used.
    ///
    /// # Errors
    /// When the descriptor is no channel.
    pub fn new(
        socket: OwnedFd,
    ) -> io::Result<(Arc<Self>, impl Future<Output = ()> + Send + use<>)> {
        let (sender, receiver) = channel::open(socket)?;
        let remote = Arc::new(Self {
            sender,
            next: AtomicU64::new(0),
            waiting: Mutex::new(Some(HashMap::new())),
            standing: Mutex::default(),
            living: Living::default(),
            events: broadcast::Sender::new(EVENTS_MAX),
            archives: Mutex::default(),
        });
        let hearing = Arc::clone(&remote).listen(receiver);
        Ok((remote, hearing))
    }

    /// What the keeper reads in the settings now, in its own words.
    ///
    /// # Errors
    /// When they cannot be read, or the keeper does not answer.
    pub async fn settings(&self) -> Result<String, RuntimeError> {
        match self.ask(Ask::Settings).await? {
            Said::Settings(text) => Ok(text),
            _ => Err(strange()),
        }
    }

    /// Has the keeper start the runtime; before, it makes nothing.
    ///
    /// # Errors
    /// The runtime's own.
    pub async fn start(&self) -> Result<(), RuntimeError> {
        self.ask(Ask::Start).await.map(|_| ())
    }

    async fn listen(self: Arc<Self>, mut receiver: Receiver) {
        loop {
            match receiver.next::<Message>().await {
                Ok(Some((message, fds))) => self.hear(message, fds),
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(%error, "what the keeper says cannot be understood");
                    break;
                }
            }
        }
        // Whoever waits, or asks later, knows that no answer will come.
        self.waiting().take();
    }

    fn hear(&self, message: Message, mut fds: VecDeque<OwnedFd>) {
        let Message { seq, said } = message;
        if let Ok(Said::Ready(capabilities)) = &said {
            let mut standing = self.standing();
            standing.capabilities = capabilities.clone();
            standing.sockets.extend(fds.drain(..));
            if standing.sockets.len() > FOLDERS_MAX {
                standing.sockets.pop_front();
            }
        }
        if seq == 0 {
            match said {
                Ok(Said::Observed(observed)) => {
                    self.living.heard(&observed);
                    let _ = self.events.send(*observed);
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "the keeper is in trouble"),
            }
            return;
        }
        let waiting = self.waiting().as_mut().and_then(|all| all.remove(&seq));
        if let Some(waiting) = waiting {
            let _ = waiting.send(said.map(|said| (said, fds)));
        }
    }

    async fn ask(&self, ask: Ask) -> Answer {
        self.ask_with(ask, Vec::new()).await.map(|(said, _)| said)
    }

    /// Asks with descriptors, and gets those of the answer.
    async fn ask_with(&self, ask: Ask, fds: Vec<OwnedFd>) -> Result<Given, RuntimeError> {
        let seq = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        match self.waiting().as_mut() {
            Some(waiting) => waiting.insert(seq, sender),
            None => return Err(gone()),
        };
        let _waits = Waits { remote: self, seq };
        if let Err(error) = self.sender.send(&Call { seq, ask }, fds).await {
            let words = format!("the keeper cannot be asked: {error}");
            return Err(RuntimeError::new(ErrorKind::Unavailable, words));
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn order(&self, ask: Ask) -> Result<(), RuntimeError> {
        self.ask(ask).await.map(|_| ())
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Remote").finish_non_exhaustive()
    }
}

fn gone() -> RuntimeError {
    RuntimeError::new(
        ErrorKind::Unavailable,
        "the privileged process of this server is gone; start the server again",
    )
}

fn strange() -> RuntimeError {
    RuntimeError::new(
        ErrorKind::Internal,
        "the privileged process answered something else than was asked",
    )
}

#[async_trait]
impl Runtime for Remote {
    fn capabilities(&self) -> Capabilities {
        self.standing().capabilities.clone()
    }

    async fn create(&self, plan: Plan) -> Result<Observed, RuntimeError> {
        let id = plan.id.clone();
        self.living.expect(&id);
        let answer = match self.ask(Ask::Create(Box::new(plan))).await {
            Ok(Said::Observed(observed)) => {
                self.living.answered(&observed);
                return Ok(*observed);
            }
            Ok(_) => strange(),
            Err(error) => error,
        };
        self.living.give_up(&id);
        Err(answer)
    }

    async fn observe(&self, id: &SandboxId) -> Result<Option<Observed>, RuntimeError> {
        match self.ask(Ask::Observe(id.clone())).await? {
            Said::Maybe(observed) => Ok(observed),
            _ => Err(strange()),
        }
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        match self.ask(Ask::List).await? {
            Said::All(all) => {
                all.iter()
                    .for_each(|observed| self.living.answered(observed));
                Ok(all)
            }
            _ => Err(strange()),
        }
    }

    async fn pause(&self, id: &SandboxId, how: Pause) -> Result<(), RuntimeError> {
        self.order(Ask::Pause(id.clone(), how)).await
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.order(Ask::Resume(id.clone())).await
    }

    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.order(Ask::Delete(id.clone())).await?;
        self.living.forget(id);
        Ok(())
    }

    async fn warm(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        self.order(Ask::Warm(id.clone())).await
    }

    async fn is_busy(&self, id: &SandboxId) -> Result<bool, RuntimeError> {
        match self.ask(Ask::IsBusy(id.clone())).await? {
            Said::Flag(is_busy) => Ok(is_busy),
            _ => Err(strange()),
        }
    }

    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError> {
        if !self.living.knows(id) {
            let words = format!("no living sandbox {id}");
            return Err(RuntimeError::new(ErrorKind::NotFound, words));
        }
        let folder = self.standing().sockets.back().map(AsRawFd::as_raw_fd);
        let folder = folder.ok_or_else(gone)?;
        Ok(Upstream {
            socket: PathBuf::from(format!("/proc/self/fd/{folder}/{id}.sock")),
            prefix: match port {
                EXECD_PORT => String::new(),
                port => format!("/proxy/{port}"),
            },
        })
    }

    fn egress(&self) -> Option<PathBuf> {
        let standing = self.standing();
        let folder = standing.sockets.back().map(AsRawFd::as_raw_fd);
        let folder = folder.filter(|_| standing.capabilities.network)?;
        Some(PathBuf::from(format!(
            "/proc/self/fd/{folder}/{EGRESS_SOCKET}"
        )))
    }

    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError> {
        match self.ask(Ask::Logs(id.clone())).await? {
            Said::Log(text) => Ok(text.into_bytes()),
            _ => Err(strange()),
        }
    }

    async fn volumes(&self) -> Result<Vec<NamedVolume>, RuntimeError> {
        match self.ask(Ask::Volumes).await? {
            Said::Volumes(all) => Ok(all),
            _ => Err(strange()),
        }
    }

    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        self.order(Ask::RemoveVolume(name.to_owned())).await
    }

    async fn snapshot(&self, order: SnapshotOrder) -> Result<Snapshot, RuntimeError> {
        match self.ask(Ask::Snapshot(order)).await? {
            Said::Snapshot(taken) => Ok(taken),
            _ => Err(strange()),
        }
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotId>, RuntimeError> {
        match self.ask(Ask::Snapshots).await? {
            Said::Snapshots(all) => Ok(all),
            _ => Err(strange()),
        }
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), RuntimeError> {
        self.order(Ask::DeleteSnapshot(id.clone())).await
    }

    async fn export_snapshot(&self, order: ExportOrder) -> Result<Export, RuntimeError> {
        self.exported(order).await
    }

    async fn import_snapshot(
        &self,
        order: ImportOrder,
        archive: Pieces,
    ) -> Result<Imported, RuntimeError> {
        let (ours, theirs) = streams::pair()?;
        let ask = self.ask_with(Ask::ImportSnapshot(order), vec![theirs]);
        match streams::send_while(archive, ours, ask).await? {
            (Said::Imported(imported), _) => Ok(imported),
            _ => Err(strange()),
        }
    }

    async fn seal(&self, order: SealOrder) -> Result<Sealed, RuntimeError> {
        match self.ask(Ask::Seal(order)).await? {
            Said::Sealed(sealed) => Ok(sealed),
            _ => Err(strange()),
        }
    }

    async fn layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError> {
        match self.ask(Ask::Layers(id.clone())).await? {
            Said::Layers(all) => Ok(all),
            _ => Err(strange()),
        }
    }

    async fn compare(&self, order: CompareOrder) -> Result<Comparison, RuntimeError> {
        self.compared(order).await
    }

    async fn undo(&self, id: &SandboxId, layer: u32) -> Result<Observed, RuntimeError> {
        match self.ask(Ask::Undo(id.clone(), layer)).await? {
            Said::Observed(observed) => Ok(*observed),
            _ => Err(strange()),
        }
    }

    async fn forget_layers(&self, id: &SandboxId, layers: &[u32]) -> Result<(), RuntimeError> {
        self.order(Ask::ForgetLayers(id.clone(), layers.to_vec()))
            .await
    }

    fn watch(&self) -> broadcast::Receiver<Observed> {
        self.events.subscribe()
    }
}

#[cfg(test)]
mod tests;
