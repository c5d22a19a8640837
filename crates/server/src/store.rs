//! What must survive the server: records, written before anything is promised.

mod access;
mod approvals;
mod migrate;
mod once;
mod row;
mod snapshots;
mod sqlite;
mod trouble;
mod vaults;

use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_wire::id::{SandboxId, SnapshotId};
use prometheus::Histogram;
use tokio::sync::{mpsc, oneshot};

use crate::access::KeptAccess;
use crate::approvals::ApprovalRecord;
use crate::lifecycle::state::Record;
use crate::lifecycle::{KeptPool, SnapshotRecord};
pub use once::{Claim, Claimed, Outcome, Settled, Standing};
pub use vaults::SealedVault;

/// Most writes that wait for the writer; more wait to wait.
const QUEUE_MAX: usize = 1024;
/// Stack of the store's threads, in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// Writes records, in the order in which it is asked to. When it is dropped, all is written.
#[derive(Debug)]
pub struct Store {
    /// There until it is dropped: the writer ends when nobody can ask any more.
    queue: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    /// Dropped to let the keeper go.
    keeping: Option<SyncSender<()>>,
    keeper: Option<JoinHandle<()>>,
    /// Tells when a change was handed in, if anybody wants to know how long it takes to be kept.
    clock: Option<Clock>,
}

/// Times how long changes take to be kept.
#[derive(Debug, Clone)]
pub struct Meter {
    /// Tells the time.
    pub clock: Clock,
    /// What counts it.
    pub seconds: Histogram,
}

/// What a store holds when it is opened.
#[derive(Debug, Default)]
pub struct Kept {
    /// The records of sandboxes.
    pub records: Vec<Record>,
    /// The ends of sandboxes that are gone, the oldest first.
    pub graves: Vec<Record>,
    /// The pools.
    pub pools: Vec<KeptPool>,
    /// The keys and tenants.
    pub access: KeptAccess,
    /// The records of snapshots.
    pub snapshots: Vec<SnapshotRecord>,
    /// What somebody is or was asked, the oldest first.
    pub approvals: Vec<ApprovalRecord>,
    /// The vaults of sandboxes, unreadable.
    pub vaults: Vec<SealedVault>,
    /// Whether the host was started anew since the store was last open.
    pub host_restarted: bool,
    /// Whether no server has begun its work with this database yet.
    pub is_new: bool,
}

/// Why a record is not kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("the database {path} cannot be opened: {why}")]
    Open {
        /// Where it is.
        path: String,
        /// What stands in the way.
        why: String,
    },
    /// A write failed.
    #[error(
        "a record could not be written: {0}; look for a full disk, a read-only \
         file system or files of another user"
    )]
    Write(String),
    /// What was read is no record of this version.
    #[error("the database holds a record that cannot be read: {0}")]
    Read(String),
    /// The writer has stopped.
    #[error("the store is closed")]
    Closed,
}

/// A change and who waits for it.
#[derive(Debug)]
struct Job {
    change: Change,
    /// When it was handed in, if that is to be known.
    since: Option<Duration>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Debug)]
enum Change {
    Put(row::Row),
    Remove(String),
    /// Takes a record out and keeps its end; one older end may have to go for it.
    Bury(row::Row, Option<String>),
    /// Takes ends out.
    Forget(Vec<String>),
    /// A pool by its name, as JSON; an error text when it could not be put into words.
    PutPool(String, Result<String, String>),
    RemovePool(String),
    Access(access::AccessChange),
    Claim(Claim, Arc<OnceLock<Standing>>),
    Settle(Settled),
    /// A server has begun its work in this run of the host.
    Begin(String),
    PutSnapshot(snapshots::Row),
    RemoveSnapshot(String),
    PutApproval(approvals::Row),
    RemoveApprovals(Vec<String>),
    PutVault(SealedVault),
    RemoveVaults(Vec<String>),
}

impl Change {
    /// Whether it must outlive a power cut: a key that was revoked must not work again, nor a
    /// credential that was taken away, and files are removed by what is kept of snapshots.
    fn lasts(&self) -> bool {
        match self {
            Self::PutSnapshot(_) | Self::PutVault(_) => true,
            Self::Access(change) => change.lasts(),
            _ => false,
        }
    }
}

/// A place in the writer's queue. Whoever holds one can hand in a change without waiting, and so
/// under a lock that keeps changes of one record in order.
#[derive(Debug)]
pub struct Slot<'a>(mpsc::Permit<'a, Job>, Option<Duration>);

/// Tells when a change is kept.
#[derive(Debug)]
#[must_use = "a change is kept only once this says so"]
pub struct Receipt(oneshot::Receiver<Result<(), StoreError>>);

impl Store {
    /// Opens the database at a path, or makes it, and reads all records. `boot` tells this run of
    /// the host from others. The writer is a thread of its own.
    ///
    /// # Errors
    /// When the database cannot be opened, is of a newer version, or holds what is no record.
    pub fn open(path: &Path, boot: &str) -> Result<(Self, Kept), StoreError> {
        Self::measured(path, boot, None)
    }

    /// The same, timed.
    ///
    /// # Errors
    /// As above.
    pub fn measured(
        path: &Path,
        boot: &str,
        meter: Option<Meter>,
    ) -> Result<(Self, Kept), StoreError> {
        let clock = meter.as_ref().map(|meter| meter.clock.clone());
        let mut database = sqlite::open(path)?;
        let kept = sqlite::load(&mut database, boot)?;
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let log = sqlite::Log::open(path)?;
        let (keeping, going) = std::sync::mpsc::sync_channel(0);
        let writer = thread(path, "store", move || {
            sqlite::write_all(database, jobs, meter.as_ref());
        })?;
        let keeper = thread(path, "store-log", move || log.keep_short(&going))?;
        let store = Self {
            queue: Some(queue),
            writer: Some(writer),
            keeping: Some(keeping),
            keeper: Some(keeper),
            clock,
        };
        Ok((store, kept))
    }

    /// Waits for a place in the queue.
    ///
    /// # Errors
    /// When the writer has stopped.
    pub async fn slot(&self) -> Result<Slot<'_>, StoreError> {
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        // The wait for a place is part of how long it takes.
        let since = self.clock.as_ref().map(|clock| clock.now().uptime);
        let place = queue.reserve().await.map_err(|_| StoreError::Closed)?;
        Ok(Slot(place, since))
    }

    /// How many changes wait to be written.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let free = self
            .queue
            .as_ref()
            .map_or(QUEUE_MAX, mpsc::Sender::capacity);
        QUEUE_MAX.saturating_sub(free) as u64
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.queue = None;
        if self
            .writer
            .take()
            .is_some_and(|writer| writer.join().is_err())
        {
            tracing::error!("the store's writer broke off; its last records may not be kept");
        }
        self.keeping = None;
        if self
            .keeper
            .take()
            .is_some_and(|keeper| keeper.join().is_err())
        {
            tracing::warn!("the keeper of the store's log broke off");
        }
    }
}

impl Slot<'_> {
    /// Hands in a record to be written.
    pub fn put(self, record: &Record) -> Receipt {
        self.hand_in(Change::Put(row::Row::of(record)))
    }

    /// Hands in a record to be taken out.
    pub fn remove(self, record: &Record) -> Receipt {
        self.hand_in(Change::Remove(record.id().to_string()))
    }

    /// Hands in a record to be taken out, of which its end is kept. An older end may have to go.
    pub fn bury(self, grave: &Record, evicted: Option<&SandboxId>) -> Receipt {
        let evicted = evicted.map(ToString::to_string);
        self.hand_in(Change::Bury(row::Row::of_grave(grave), evicted))
    }

    /// Hands in ends to be taken out.
    pub fn forget(self, graves: Vec<SandboxId>) -> Receipt {
        let graves = graves.into_iter().map(String::from).collect();
        self.hand_in(Change::Forget(graves))
    }

    /// Hands in a pool to be written.
    pub fn put_pool(self, pool: &KeptPool) -> Receipt {
        let text = serde_json::to_string(pool).map_err(|error| error.to_string());
        self.hand_in(Change::PutPool(pool.name.clone(), text))
    }

    /// Hands in a pool to be taken out.
    pub fn remove_pool(self, name: &str) -> Receipt {
        self.hand_in(Change::RemovePool(name.to_owned()))
    }

    /// Hands in a snapshot's record to be written.
    pub(crate) fn put_snapshot(self, record: &SnapshotRecord) -> Receipt {
        self.hand_in(Change::PutSnapshot(snapshots::Row::of(record)))
    }

    /// Hands in a snapshot's record to be taken out.
    pub(crate) fn remove_snapshot(self, id: &SnapshotId) -> Receipt {
        self.hand_in(Change::RemoveSnapshot(id.to_string()))
    }

    /// Hands in that a server has begun its work, in this run of the host.
    pub fn begin(self, boot: &str) -> Receipt {
        self.hand_in(Change::Begin(boot.to_owned()))
    }

    /// Asks what a key stands for, and takes it if it is new.
    pub fn claim(self, claim: Claim) -> Claimed {
        let standing = Arc::default();
        let receipt = self.hand_in(Change::Claim(claim, Arc::clone(&standing)));
        Claimed { receipt, standing }
    }

    /// Hands in the end of a command that is run once.
    pub fn settle(self, settled: Settled) -> Receipt {
        self.hand_in(Change::Settle(settled))
    }

    fn hand_in(self, change: Change) -> Receipt {
        let (done, receipt) = oneshot::channel();
        let since = self.1;
        self.0.send(Job {
            change,
            since,
            done,
        });
        Receipt(receipt)
    }
}

impl Receipt {
    /// Returns once the change would survive the death of this process.
    ///
    /// # Errors
    /// When it was not kept.
    pub async fn kept(self) -> Result<(), StoreError> {
        self.0.await.unwrap_or(Err(StoreError::Closed))
    }
}

fn thread(
    path: &Path,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let builder = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES);
    builder.spawn(work).map_err(|error| StoreError::Open {
        path: path.display().to_string(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod durability;
#[cfg(test)]
mod tests;
