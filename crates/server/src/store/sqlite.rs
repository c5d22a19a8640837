//! The database: one connection, owned by one thread.

use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rusqlite::{Connection, Transaction, params};
use tokio::sync::mpsc;

use super::{Change, Job, StoreError, migrate, row};
use crate::lifecycle::state::Record;

/// Most changes of one transaction.
const BATCH_MAX: usize = 128;

/// How long another program may hold the database (a backup) before a write fails.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// Pages of the log from which on the writer itself makes it short.
const LOG_PAGES_MAX: u32 = 20_000;

/// How often the log is copied into the database.
const KEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The write-ahead log, seen from a connection of its own.
pub(super) struct Log(Connection);

impl Log {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Connection::open(path)
            .map(Self)
            .map_err(|error| StoreError::Open {
                path: path.display().to_string(),
                why: error.to_string(),
            })
    }

    /// Copies the log into the database now and then, beside the writer and without holding it up,
    /// until the other end of `going` is dropped.
    pub(super) fn keep_short(self, going: &std::sync::mpsc::Receiver<()>) {
        while going.recv_timeout(KEEP_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let copied = self
                .0
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if let Err(error) = copied {
                tracing::warn!(%error, "the store's log could not be made shorter");
            }
        }
    }
}

/// Opens the database at a path, or makes it, at this program's version.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let failed = |why: String| StoreError::Open {
        path: path.display().to_string(),
        why,
    };
    let mut database = Connection::open(path).map_err(|error| failed(error.to_string()))?;
    let prepared = database.busy_timeout(BUSY_MAX).and_then(|()| {
        database.pragma_update(None, "journal_mode", "WAL")?;
        // Copying the log into the database waits for the disk; the keeper does that aside.
        database.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
        // A commit survives the death of this process without waiting for the disk; a power cut
        // may cost the last commits and never harms the file.
        database.pragma_update(None, "synchronous", "NORMAL")
    });
    prepared.map_err(|error| failed(error.to_string()))?;
    migrate::MIGRATIONS
        .to_latest(&mut database)
        .map_err(|error| failed(error.to_string()))?;
    Ok(database)
}

/// Reads every record.
pub(super) fn load(database: &mut Connection) -> Result<Vec<Record>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let mut query = database
        .prepare("SELECT record FROM sandboxes ORDER BY created_us")
        .map_err(failed)?;
    let texts = query
        .query_map([], |line| line.get::<_, String>(0))
        .map_err(failed)?;
    texts
        .map(|text| row::read(&text.map_err(failed)?))
        .collect()
}

/// Writes changes until nobody can ask for more. What queues up while one transaction is written
/// shares the next.
pub(super) fn write_all(mut database: Connection, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while jobs.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let outcome = write(&mut database, &batch);
        if let Err(error) = &outcome {
            tracing::error!(%error, changes = batch.len(), "records could not be written");
        }
        for job in batch.drain(..) {
            // Whoever asked may be gone; the change is kept all the same.
            let _ = job.done.send(outcome.clone());
        }
    }
}

fn write(database: &mut Connection, batch: &[Job]) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Write(error.to_string());
    let transaction = database.transaction().map_err(failed)?;
    for job in batch {
        change(&transaction, &job.change)?;
    }
    transaction.commit().map_err(failed)
}

fn change(transaction: &Transaction<'_>, change: &Change) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Write(error.to_string());
    match change {
        Change::Put(row) => {
            let record = row
                .record
                .as_ref()
                .map_err(|why| StoreError::Write(why.clone()))?;
            transaction
                .prepare_cached(
                    "INSERT INTO sandboxes (id, created_us, record) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET record = excluded.record",
                )
                .and_then(|mut put| put.execute(params![row.id, row.created_us, record]))
        }
        Change::Remove(id) => transaction
            .prepare_cached("DELETE FROM sandboxes WHERE id = ?1")
            .and_then(|mut remove| remove.execute(params![id])),
    }
    .map(drop)
    .map_err(failed)
}
