//! Who did what: one line of JSON for each operation that changes something and for each refused
//! authentication, in files of the state directory that only grow. Never in a line: bodies, keys,
//! tokens, queries.
//!
//! A line that cannot be written is lost, and that is told; no request waits for the disk.

mod files;
mod line;
mod read;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use barchan_wire::lifecycle::Time;
use barchan_wire::local;

use files::Files;
pub use line::{Actor, Line, Outcome};
pub use read::Reader;

/// Where the files are in the state directory.
pub(crate) const FOLDER: &str = "audit";
/// What changed something, and who was refused. Strangers must not be able to push the first out
/// with the second.
const CHANGES: &str = "changes";
const REFUSALS: &str = "refusals";

/// Most lines on their way to the disk; further ones are lost.
const QUEUE_MAX: usize = 4096;
/// Most refusals among them: strangers must not fill the way either.
const REFUSALS_MAX: usize = QUEUE_MAX / 4;
/// How often it is told again that lines are lost, in microseconds.
const TELL_INTERVAL_US: u64 = 60_000_000;
/// Stack of the writer, in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// How large the files become and how many there are, of each kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) file_bytes_max: u64,
    pub(crate) files_max: u64,
}

/// Where lines go; nowhere when the operator wants none. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audit(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    /// There until the last clone goes: the writer ends when nobody can ask any more.
    queue: Mutex<Option<SyncSender<Line>>>,
    refusals_waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The folder of the files below a state directory.
#[must_use]
pub fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join(local::SERVER_FOLDER).join(FOLDER)
}

impl Audit {
    /// Begins to write in a folder.
    ///
    /// # Errors
    /// When the folder or its files cannot be made or opened, or there can be no thread.
    pub(crate) fn open(folder: &Path, sizes: Sizes) -> io::Result<Self> {
        files::make_folder(folder)?;
        let (queue, lines) = sync_channel(QUEUE_MAX);
        let lost = Arc::<AtomicU64>::default();
        let refusals_waiting = Arc::<AtomicUsize>::default();
        let [mut changes, mut refusals] =
            [CHANGES, REFUSALS].map(|name| Files::new(folder, name, sizes));
        // What stands in the way is told at the start, not at the first line.
        changes.open()?;
        refusals.open()?;
        let writer = Writer {
            changes,
            refusals,
            refusals_waiting: Arc::clone(&refusals_waiting),
            lost: Arc::clone(&lost),
            told: None,
        };
        let builder = std::thread::Builder::new().name("audit".to_owned());
        let thread = builder
            .stack_size(STACK_BYTES)
            .spawn(move || writer.write_all(&lines))?;
        Ok(Self(Some(Arc::new(Shared {
            queue: Mutex::new(Some(queue)),
            refusals_waiting,
            lost,
            writer: Mutex::new(Some(thread)),
        }))))
    }

    /// Whether anything is written at all.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands in a line. Never waits.
    pub(crate) fn note(&self, line: Line) {
        let Some(shared) = &self.0 else { return };
        let is_refusal = line.outcome == Outcome::Refused;
        let waiting = &shared.refusals_waiting;
        let queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = !is_refusal || waiting.load(Ordering::Relaxed) < REFUSALS_MAX;
        if is_refusal {
            waiting.fetch_add(1, Ordering::Relaxed);
        }
        let is_taken = has_room && queue.as_ref().is_some_and(|it| it.try_send(line).is_ok());
        if !is_taken {
            if is_refusal {
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(queue.take());
        let writer = self.writer.get_mut();
        let writer = writer.unwrap_or_else(PoisonError::into_inner).take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the writer of the audit log broke off");
        }
    }
}

struct Writer {
    changes: Files,
    refusals: Files,
    refusals_waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// When it was told last that lines are lost.
    told: Option<Time>,
}

impl Writer {
    fn write_all(mut self, lines: &Receiver<Line>) {
        while let Ok(line) = lines.recv() {
            self.write(line);
        }
    }

    fn write(&mut self, mut line: Line) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        line.lost = (lost > 0).then_some(lost);
        let at = line.at;
        let files = match line.outcome {
            Outcome::Refused => {
                self.refusals_waiting.fetch_sub(1, Ordering::Relaxed);
                &mut self.refusals
            }
            _ => &mut self.changes,
        };
        // Our own types always are JSON.
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        match files.append(&text) {
            Ok(()) => {
                if lost > 0 {
                    tracing::warn!(lost, "lines of the audit log were lost before this one");
                }
            }
            Err(error) => {
                self.lost.fetch_add(lost + 1, Ordering::Relaxed);
                self.complain(at, &error);
            }
        }
    }

    fn complain(&mut self, now: Time, error: &io::Error) {
        let since = |told: Time| now.as_micros().abs_diff(told.as_micros());
        if self.told.is_none_or(|told| since(told) >= TELL_INTERVAL_US) {
            self.told = Some(now);
            let advice = crate::app::advice(error);
            tracing::error!(
                %error,
                "the audit log cannot be written, and lines of it are lost{advice}"
            );
        }
    }
}

#[cfg(test)]
mod tests;
