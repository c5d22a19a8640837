//! The privileged side: carries out what the server asks of a runtime, and tells it what happens.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use rustix::fs::OFlags;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OnceCell, broadcast, watch};

use super::Answer;
use super::channel::{self, Sender};
use super::streams::{self, Outgoing};
use super::words::{Ask, Call, Message, Said};
use crate::{ErrorKind, Observed, Runtime, RuntimeError};

/// Most questions at work at once; what comes after waits in the channel, and the server with it.
const ASKED_MAX: usize = 4096;

/// A runtime, and the folder in which its sandboxes' sockets are at the moment.
pub struct Served {
    /// The runtime.
    pub runtime: Arc<dyn Runtime>,
    /// That folder, as this process reaches it.
    pub sockets: watch::Receiver<PathBuf>,
}

impl fmt::Debug for Served {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Served").finish_non_exhaustive()
    }
}

/// Serves one server over a channel until it is gone. `start` is called once, when the server has
/// taken the state directory; `settings` whenever it wants to know what they say.
///
/// # Errors
/// When the channel fails.
pub async fn serve<S, F>(
    socket: OwnedFd,
    start: S,
    settings: impl Fn() -> Result<String, String> + Send + Sync + 'static,
) -> io::Result<()>
where
    S: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<Served, RuntimeError>> + Send,
{
    let (sender, mut receiver) = channel::open(socket)?;
    let host = Arc::new(Host {
        sender,
        start,
        settings,
        served: OnceCell::new(),
    });
    let mut tasks = tokio::task::JoinSet::new();
    while let Some((Call { seq, ask }, given)) = receiver.next().await? {
        while tasks.try_join_next().is_some() {}
        while tasks.len() >= ASKED_MAX {
            tasks.join_next().await;
        }
        let host = Arc::clone(&host);
        tasks.spawn(async move {
            let is_start = matches!(ask, Ask::Start);
            // A question that this process has a fault in is answered as well.
            let answer = AssertUnwindSafe(host.answer(ask, given)).catch_unwind();
            let (said, fds, outgoing) = answer.await.unwrap_or_else(|_| faulty());
            // Heard from before the answer on, so that nothing is missed behind it.
            let served = host.served.get().filter(|_| is_start && said.is_ok());
            let served = served.map(|served| (&*served.runtime, News::of(served)));
            host.say(Message { seq, said }, fds).await;
            if let Some(outgoing) = outgoing {
                outgoing.send().await;
            }
            if let Some((runtime, news)) = served {
                host.tell(runtime, news).await;
            }
        });
    }
    Ok(())
}

/// The answer to a question over which the program stumbled; the log has where.
fn faulty() -> (Answer, Vec<OwnedFd>, Option<Outgoing>) {
    let words = "the privileged process of this server has a fault in this; its log says more";
    let error = RuntimeError::new(ErrorKind::Internal, words);
    (Err(error), Vec::new(), None)
}

struct Host<S, C> {
    sender: Sender,
    start: S,
    settings: C,
    served: OnceCell<Served>,
}

impl<S, F, C> Host<S, C>
where
    S: Fn() -> F + Send + Sync,
    F: Future<Output = Result<Served, RuntimeError>> + Send,
    C: Fn() -> Result<String, String> + Send + Sync,
{
    /// The answer, what goes with it, and what is sent after it.
    async fn answer(
        &self,
        ask: Ask,
        given: VecDeque<OwnedFd>,
    ) -> (Answer, Vec<OwnedFd>, Option<Outgoing>) {
        let said = match (self.served.get(), ask) {
            (Some(served), Ask::ExportSnapshot(order)) => {
                return with_stream(streams::export(&*served.runtime, order).await);
            }
            (Some(served), Ask::Compare(order)) => {
                return with_stream(streams::compare(&*served.runtime, order).await);
            }
            (Some(served), Ask::ImportSnapshot(order)) => {
                streams::import(&*served.runtime, order, given).await
            }
            (_, ask) => self.answer_plainly(ask).await,
        };
        (said, Vec::new(), None)
    }

    async fn answer_plainly(&self, ask: Ask) -> Answer {
        match ask {
            Ask::Settings => (self.settings)()
                .map(Said::Settings)
                .map_err(|words| RuntimeError::new(ErrorKind::Unavailable, words)),
            Ask::Start if self.served.initialized() => Err(super::strange()),
            Ask::Start => {
                let served = self.served.get_or_try_init(&self.start).await?;
                Ok(Said::Ready(served.runtime.capabilities()))
            }
            ask => match self.served.get() {
                Some(served) => carry_out(&*served.runtime, ask).await,
                None => Err(RuntimeError::new(
                    ErrorKind::Unavailable,
                    "the runtime is not started yet",
                )),
            },
        }
    }

    /// Passes on what the runtime sees, and the folder of sockets when it is another one.
    async fn tell(&self, runtime: &dyn Runtime, mut news: News) {
        while let Some(change) = news.next().await {
            match change {
                Change::Seen(observed) => self.tell_one(Said::seen(observed)).await,
                Change::Launcher => self.tell_one(Said::Ready(runtime.capabilities())).await,
                // What there is now says it all; those that ended are on the list as well.
                Change::Missed => {
                    for observed in runtime.list().await.unwrap_or_default() {
                        self.tell_one(Said::seen(observed)).await;
                    }
                }
            }
        }
    }

    async fn tell_one(&self, said: Said) {
        let said = Ok(said);
        self.say(Message { seq: 0, said }, Vec::new()).await;
    }

    async fn say(&self, message: Message, mut fds: Vec<OwnedFd>) {
        let folder = match &message.said {
            Ok(Said::Ready(_)) => self.folder(),
            _ => Ok(None),
        };
        let (message, folder) = match folder {
            Ok(folder) => (message, folder),
            Err(error) => {
                let words = format!("open the folder of the sandboxes' sockets: {error}");
                let said = Err(RuntimeError::new(ErrorKind::Unavailable, words));
                (Message { said, ..message }, None)
            }
        };
        fds.extend(folder.map(OwnedFd::from));
        match self.sender.send(&message, fds).await {
            // Too long for the channel: whoever waits must not wait for ever.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let said = Err(RuntimeError::new(ErrorKind::Internal, error.to_string()));
                let told = Message { said, ..message };
                let _ = self.sender.send(&told, Vec::new()).await;
            }
            // Who does not listen any longer is gone, which the loop of questions sees too.
            Err(error) => tracing::debug!(%error, "the server was not told"),
            Ok(()) => {}
        }
    }

    fn folder(&self) -> io::Result<Option<File>> {
        let sockets = self.served.get().map(|it| it.sockets.borrow().clone());
        sockets.map(|path| open_folder(&path)).transpose()
    }
}

fn with_stream(
    begun: Result<(Said, OwnedFd, Outgoing), RuntimeError>,
) -> (Answer, Vec<OwnedFd>, Option<Outgoing>) {
    match begun {
        Ok((said, stream, outgoing)) => (Ok(said), vec![stream], Some(outgoing)),
        Err(error) => (Err(error), Vec::new(), None),
    }
}

/// What happens without being asked for.
struct News {
    seen: broadcast::Receiver<Observed>,
    sockets: watch::Receiver<PathBuf>,
}

enum Change {
    Seen(Observed),
    Missed,
    Launcher,
}

impl News {
    fn of(served: &Served) -> Self {
        let mut sockets = served.sockets.clone();
        sockets.mark_unchanged();
        Self {
            seen: served.runtime.watch(),
            sockets,
        }
    }

    async fn next(&mut self) -> Option<Change> {
        tokio::select! {
            // A new launcher's sandboxes are told of behind its folder.
            biased;
            changed = self.sockets.changed() => changed.ok().map(|()| Change::Launcher),
            observed = self.seen.recv() => match observed {
                Ok(observed) => Some(Change::Seen(observed)),
                Err(RecvError::Lagged(_)) => Some(Change::Missed),
                Err(RecvError::Closed) => None,
            },
        }
    }
}

/// Opens a folder for nothing but what lies in it.
fn open_folder(path: &Path) -> io::Result<File> {
    let flags = (OFlags::PATH | OFlags::DIRECTORY).bits();
    File::options()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

async fn carry_out(runtime: &dyn Runtime, ask: Ask) -> Result<Said, RuntimeError> {
    Ok(match ask {
        Ask::Settings | Ask::Start => Said::Done,
        Ask::Create(plan) => Said::seen(runtime.create(*plan).await?),
        Ask::Observe(id) => Said::Maybe(runtime.observe(&id).await?),
        Ask::List => Said::All(runtime.list().await?),
        Ask::Pause(id, how) => done(runtime.pause(&id, how).await?),
        Ask::Resume(id) => done(runtime.resume(&id).await?),
        Ask::Delete(id) => done(runtime.delete(&id).await?),
        Ask::Warm(id) => done(runtime.warm(&id).await?),
        Ask::IsBusy(id) => Said::Flag(runtime.is_busy(&id).await?),
        Ask::Logs(id) => Said::Log(String::from_utf8_lossy(&runtime.logs(&id).await?).into_owned()),
        Ask::Volumes => Said::Volumes(runtime.volumes().await?),
        Ask::RemoveVolume(name) => done(runtime.remove_volume(&name).await?),
        Ask::Snapshot(order) => Said::Snapshot(runtime.snapshot(order).await?),
        Ask::Snapshots => Said::Snapshots(runtime.snapshots().await?),
        Ask::DeleteSnapshot(id) => done(runtime.delete_snapshot(&id).await?),
        Ask::Seal(order) => Said::Sealed(runtime.seal(order).await?),
        Ask::Layers(id) => Said::Layers(runtime.layers(&id).await?),
        Ask::Undo(id, layer) => Said::seen(runtime.undo(&id, layer).await?),
        Ask::ForgetLayers(id, layers) => done(runtime.forget_layers(&id, &layers).await?),
        // Those come with streams.
        Ask::Compare(_) | Ask::ExportSnapshot(_) | Ask::ImportSnapshot(_) => Said::Done,
    })
}

fn done((): ()) -> Said {
    Said::Done
}
