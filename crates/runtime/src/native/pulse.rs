//! Asks the daemon of every running sandbox, time and again, whether it still answers, and has
//! those ended that do not: whoever is root inside can wedge it, and callers must not wait for it.
//!
//! Time is counted in ticks of this one loop, and what was answered is heard before a tick is
//! counted. So a server that gets no processor only counts more slowly, and condemns nobody for
//! its own lateness. Each question has a connection of its own: taking one is just what a daemon
//! without descriptors cannot do any more.

mod rounds;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use barchan_jail::proto::Request;
use barchan_wire::id::SandboxId;
use futures::StreamExt;
use futures::future::{AbortHandle, abortable};
use futures::stream::FuturesUnordered;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::MissedTickBehavior;

use super::Native;
use rounds::{Due, Rounds};

/// Between two ticks.
const TICK: Duration = Duration::from_millis(250);

const LIFE: &[u8] = b"GET /ping HTTP/1.1\r\nhost: execd\r\nconnection: close\r\n\r\n";
/// Longest time to wait for its answer to this one.
const WORK_WAIT: Duration = Duration::from_secs(10);
const WORK: &[u8] = b"GET /x/busy HTTP/1.1\r\nhost: execd\r\nconnection: close\r\n\r\n";
const YES: &[u8] = b"HTTP/1.1 200 ";
const NO: &[u8] = b"HTTP/1.1 204 ";

/// What comes of a question, or of a verdict.
enum Outcome {
    /// It answered, or why not is no fault of its own: it is asked again in its turn.
    Spared(SandboxId),
    /// It is being ended.
    Ended,
}

/// A question under way, which ends when nobody wants its answer any more.
struct Asking(AbortHandle);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Watches until the future is dropped.
pub(super) async fn watch(native: &Native) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rounds = Rounds::default();
    let mut asking: HashMap<SandboxId, Asking> = HashMap::new();
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(outcome) = under_way.next() => {
                if let Ok(Outcome::Spared(id)) = outcome {
                    asking.remove(&id);
                    rounds.spare(&id);
                }
            }
            _ = ticks.tick() => {
                for (id, due) in rounds.tick(&native.living.running()) {
                    let (task, handle) = abortable(pursue(native, id.clone(), due));
                    asking.insert(id, Asking(handle));
                    under_way.push(task);
                }
                asking.retain(|id, _| rounds.knows(id));
            }
        }
    }
}

async fn pursue(native: &Native, id: SandboxId, due: Due) -> Outcome {
    match due {
        Due::Question => {
            let socket = native.socket(&id);
            while let Err(error) = is_alive(&socket).await {
                if is_ours(&error) {
                    tracing::warn!(%id, %error, "its daemon could not be asked whether it answers");
                    break;
                }
                tokio::time::sleep(TICK).await;
            }
            Outcome::Spared(id)
        }
        Due::Verdict => match native.ask(Request::Condemn(id.to_string())).await {
            Ok(_) => {
                tracing::warn!(%id, "ended: its daemon does not answer any more");
                Outcome::Ended
            }
            Err(error) => {
                tracing::debug!(%id, %error, "it was not ended");
                Outcome::Spared(id)
            }
        },
    }
}

/// Whether the daemon answers.
async fn is_alive(socket: &Path) -> io::Result<()> {
    match ask(socket, LIFE).await? {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Whether something is at work in the sandbox, by its daemon's word.
pub(super) async fn is_busy(socket: &Path) -> io::Result<bool> {
    let asked = tokio::time::timeout(WORK_WAIT, ask(socket, WORK)).await;
    asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Asks once and waits for as long as it takes.
// BOUNDARY: sandbox → host. Test: only_an_answer_counts
async fn ask(socket: &Path, question: &[u8]) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(question).await?;
    let mut answer = [0; YES.len()];
    stream.read_exact(&mut answer).await?;
    match answer.as_slice() {
        YES => Ok(true),
        NO => Ok(false),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Whether it is this process or its host that lacks something.
fn is_ours(error: &io::Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|errno| lacking.contains(&errno))
}

#[cfg(test)]
mod tests;
