//! The records of snapshots as rows.

use rusqlite::{Connection, Transaction, params};

use super::StoreError;
use crate::lifecycle::SnapshotRecord;

/// The columns of a row.
#[derive(Debug)]
pub(super) struct Row {
    id: String,
    created_us: i64,
    /// Whose it is; empty for nobody's in particular.
    owner: String,
    /// The record as JSON; an error text when it could not be put into words.
    record: Result<String, String>,
}

impl Row {
    pub(super) fn of(record: &SnapshotRecord) -> Self {
        Self {
            id: record.id.to_string(),
            created_us: record.created_at.as_micros(),
            owner: record.owner.clone(),
            record: serde_json::to_string(record).map_err(|error| error.to_string()),
        }
    }
}

pub(super) fn put(transaction: &Transaction<'_>, row: &Row) -> Result<(), StoreError> {
    let record = row
        .record
        .as_ref()
        .map_err(|why| StoreError::Write(why.clone()))?;
    transaction
        .prepare_cached(
            "INSERT INTO snapshots (id, created_us, owner, record) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, record = excluded.record",
        )
        .and_then(|mut put| put.execute(params![row.id, row.created_us, row.owner, record]))
        .map(drop)
        .map_err(|error| StoreError::Write(error.to_string()))
}

pub(super) fn read_all(database: &Connection) -> Result<Vec<SnapshotRecord>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let mut query = database
        .prepare("SELECT record FROM snapshots ORDER BY created_us")
        .map_err(failed)?;
    let texts = query
        .query_map([], |line| line.get::<_, String>(0))
        .map_err(failed)?;
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|error| StoreError::Read(error.to_string()))
    };
    texts.map(|text| read(text.map_err(failed)?)).collect()
}
