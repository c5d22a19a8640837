//! The database: one connection, owned by one thread.

use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tokio::sync::mpsc;

use super::once::Results;
use super::{
    Change, Job, Kept, Meter, StoreError, access, approvals, migrate, row, snapshots, trouble,
    vaults,
};
use crate::lifecycle::KeptPool;
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
    let mut database = Connection::open(path).map_err(|error| failed(trouble::plainly(&error)))?;
    let prepared = database.busy_timeout(BUSY_MAX).and_then(|()| {
        database.pragma_update(None, "journal_mode", "WAL")?;
        // Copying the log into the database waits for the disk; the keeper does that aside.
        database.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
        // A commit survives the death of this process without waiting for the disk; a power cut
        // may cost the last commits and never harms the file.
        database.pragma_update(None, "synchronous", "NORMAL")
    });
    prepared.map_err(|error| failed(trouble::plainly(&error)))?;
    migrate::MIGRATIONS
        .to_latest(&mut database)
        .map_err(|error| failed(trouble::of_versions(&error)))?;
    Ok(database)
}

/// Reads all that is kept.
pub(super) fn load(database: &mut Connection, boot: &str) -> Result<Kept, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let records = read_all(database, "SELECT record FROM sandboxes ORDER BY created_us")?;
    let graves = read_all(database, "SELECT record FROM graves ORDER BY ended_us")?;
    let before: Option<String> = database
        .query_row("SELECT value FROM facts WHERE name = 'boot'", [], |line| {
            line.get(0)
        })
        .optional()
        .map_err(failed)?;
    let pools = read_pools(database)?;
    let snapshots = snapshots::read_all(database)?;
    let approvals = approvals::read_all(database)?;
    let vaults = vaults::read_all(database)?;
    Ok(Kept {
        records,
        graves,
        pools,
        access: access::load(database)?,
        snapshots,
        approvals,
        vaults,
        is_new: before.is_none(),
        host_restarted: before.is_some_and(|before| before != boot),
    })
}

fn read_pools(database: &Connection) -> Result<Vec<KeptPool>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let mut query = database.prepare("SELECT pool FROM pools").map_err(failed)?;
    let texts = query
        .query_map([], |line| line.get::<_, String>(0))
        .map_err(failed)?;
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|error| StoreError::Read(error.to_string()))
    };
    texts.map(|text| read(text.map_err(failed)?)).collect()
}

fn read_all(database: &Connection, query: &str) -> Result<Vec<Record>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let mut query = database.prepare(query).map_err(failed)?;
    let texts = query
        .query_map([], |line| line.get::<_, String>(0))
        .map_err(failed)?;
    texts
        .map(|text| row::read(&text.map_err(failed)?))
        .collect()
}

/// Writes changes until nobody can ask for more. What queues up while one transaction is written
/// shares the next.
pub(super) fn write_all(
    database: Connection,
    mut jobs: mpsc::Receiver<Job>,
    meter: Option<&Meter>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut writer = Writer::new(database);
    while jobs.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let outcome = writer.write(batch.iter().map(|job| &job.change));
        if let Err(error) = &outcome {
            tracing::error!(%error, changes = batch.len(), "records could not be written");
        }
        let now = meter.map(|meter| meter.clock.now().uptime);
        for job in batch.drain(..) {
            if let (Some(meter), Some(now), Some(since)) = (meter, now, job.since) {
                meter
                    .seconds
                    .observe(now.saturating_sub(since).as_secs_f64());
            }
            // Whoever asked may be gone; the change is kept all the same.
            let _ = job.done.send(outcome.clone());
        }
    }
}

/// The connection that writes, and what is known of it.
pub(super) struct Writer {
    pub(super) database: Connection,
    results: Option<Results>,
    /// Whether commits wait for the disk at present; `None` when that is not known.
    is_full: Option<bool>,
}

impl Writer {
    pub(super) fn new(database: Connection) -> Self {
        Self {
            database,
            results: None,
            is_full: None,
        }
    }

    /// Writes these changes, all or none.
    pub(super) fn write<'a>(
        &mut self,
        batch: impl Iterator<Item = &'a Change> + Clone,
    ) -> Result<(), StoreError> {
        let outcome = self.try_to_write(batch);
        if outcome.is_err() {
            // What was undone is counted anew.
            self.results = None;
        }
        outcome
    }

    fn try_to_write<'a>(
        &mut self,
        mut batch: impl Iterator<Item = &'a Change> + Clone,
    ) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| StoreError::Write(error.to_string());
        // What must not come back, or not be gone, after a power cut waits for the disk.
        let lasts = batch.clone().any(Change::lasts);
        self.wait_for_disk(lasts).map_err(failed)?;
        let results = match &mut self.results {
            Some(results) => results,
            None => {
                let counted = Results::count(&self.database).map_err(failed)?;
                self.results.insert(counted)
            }
        };
        let transaction = self.database.transaction().map_err(failed)?;
        batch.try_for_each(|it| change(&transaction, results, it))?;
        transaction.commit().map_err(failed)
    }

    /// Has commits wait for the disk or not. Told only when that changes: telling it costs about as
    /// much as writing one record.
    fn wait_for_disk(&mut self, full: bool) -> Result<(), rusqlite::Error> {
        if self.is_full == Some(full) {
            return Ok(());
        }
        self.is_full = None;
        let synchronous = if full { "FULL" } else { "NORMAL" };
        self.database
            .pragma_update(None, "synchronous", synchronous)?;
        self.is_full = Some(full);
        Ok(())
    }
}

fn change(
    transaction: &Transaction<'_>,
    results: &mut Results,
    change: &Change,
) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Write(error.to_string());
    match change {
        Change::Put(row) => {
            if row.is_over {
                take_out(transaction, &row.id, "vaults")?;
            }
            put(transaction, row, "sandboxes", "created_us")
        }
        Change::Remove(id) => {
            take_out(transaction, id, "vaults")?;
            take_out(transaction, id, "sandboxes")
        }
        Change::Bury(row, evicted) => {
            take_out(transaction, &row.id, "vaults")?;
            take_out(transaction, &row.id, "sandboxes")?;
            if let Some(evicted) = evicted {
                take_out(transaction, evicted, "graves")?;
            }
            put(transaction, row, "graves", "ended_us")
        }
        Change::Forget(graves) => graves
            .iter()
            .try_for_each(|id| take_out(transaction, id, "graves")),
        Change::PutPool(name, pool) => {
            let pool = pool
                .as_ref()
                .map_err(|why| StoreError::Write(why.clone()))?;
            transaction
                .prepare_cached(
                    "INSERT INTO pools (name, pool) VALUES (?1, ?2)
                     ON CONFLICT (name) DO UPDATE SET pool = excluded.pool",
                )
                .and_then(|mut put| put.execute(params![name, pool]))
                .map(drop)
                .map_err(failed)
        }
        Change::RemovePool(name) => transaction
            .execute("DELETE FROM pools WHERE name = ?1", params![name])
            .map(drop)
            .map_err(failed),
        Change::Access(change) => access::write(transaction, change),
        Change::Begin(boot) => transaction
            .execute(
                "INSERT INTO facts (name, value) VALUES ('boot', ?1)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                params![boot],
            )
            .map(drop)
            .map_err(failed),
        Change::PutSnapshot(row) => snapshots::put(transaction, row),
        Change::RemoveSnapshot(id) => take_out(transaction, id, "snapshots"),
        Change::PutApproval(row) => approvals::put(transaction, row),
        Change::RemoveApprovals(ids) => ids
            .iter()
            .try_for_each(|id| take_out(transaction, id, "approvals")),
        Change::PutVault(vault) => vaults::put(transaction, vault),
        Change::RemoveVaults(ids) => ids
            .iter()
            .try_for_each(|id| take_out(transaction, id, "vaults")),
        Change::Claim(claim, standing) => {
            let found = results.claim(transaction, claim).map_err(failed)?;
            // Nobody else fills it, so it is empty.
            let _ = standing.set(found);
            Ok(())
        }
        Change::Settle(settled) => results.settle(transaction, settled).map_err(failed),
    }
}

fn put(
    transaction: &Transaction<'_>,
    row: &row::Row,
    table: &str,
    time: &str,
) -> Result<(), StoreError> {
    let record = row
        .record
        .as_ref()
        .map_err(|why| StoreError::Write(why.clone()))?;
    let query = format!(
        "INSERT INTO {table} (id, {time}, record) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET record = excluded.record"
    );
    transaction
        .prepare_cached(&query)
        .and_then(|mut put| put.execute(params![row.id, row.at_us, record]))
        .map(drop)
        .map_err(|error| StoreError::Write(error.to_string()))
}

fn take_out(transaction: &Transaction<'_>, id: &str, table: &str) -> Result<(), StoreError> {
    transaction
        .prepare_cached(&format!("DELETE FROM {table} WHERE id = ?1"))
        .and_then(|mut remove| remove.execute(params![id]))
        .map(drop)
        .map_err(|error| StoreError::Write(error.to_string()))
}
