//! What somebody is asked.

use rusqlite::{Connection, Transaction, params};

use super::{Change, Receipt, Slot, StoreError};
use crate::approvals::ApprovalRecord;

/// The columns of a row.
#[derive(Debug)]
pub(super) struct Row {
    id: String,
    asked_us: i64,
    /// The record as JSON; an error text when it could not be put into words.
    record: Result<String, String>,
}

impl Slot<'_> {
    /// Hands in an approval to be written.
    pub(crate) fn put_approval(self, record: &ApprovalRecord) -> Receipt {
        self.hand_in(Change::PutApproval(Row {
            id: record.id.clone(),
            asked_us: record.asked_at.as_micros(),
            record: serde_json::to_string(record).map_err(|error| error.to_string()),
        }))
    }

    /// Hands in approvals to be taken out.
    pub(crate) fn remove_approvals(self, ids: Vec<String>) -> Receipt {
        self.hand_in(Change::RemoveApprovals(ids))
    }
}

pub(super) fn put(transaction: &Transaction<'_>, row: &Row) -> Result<(), StoreError> {
    let record = row.record.as_ref();
    let record = record.map_err(|why| StoreError::Write(why.clone()))?;
    let query = "INSERT INTO approvals (id, asked_us, record) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    transaction
        .prepare_cached(query)
        .and_then(|mut put| put.execute(params![row.id, row.asked_us, record]))
        .map(drop)
        .map_err(|error| StoreError::Write(error.to_string()))
}

/// Reads all that are kept, the oldest first.
pub(super) fn read_all(database: &Connection) -> Result<Vec<ApprovalRecord>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let query = "SELECT record FROM approvals ORDER BY asked_us, id";
    let mut query = database.prepare(query).map_err(failed)?;
    let texts = query
        .query_map([], |line| line.get::<_, String>(0))
        .map_err(failed)?;
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|error| StoreError::Read(error.to_string()))
    };
    texts.map(|text| read(text.map_err(failed)?)).collect()
}
