//! Pure. A record as a row.

use crate::lifecycle::state::Record;
use crate::store::StoreError;

/// The columns of a row.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    /// When it was asked for; of a grave, when it ended.
    pub(super) at_us: i64,
    /// Whether nothing of it will ever run again.
    pub(super) is_over: bool,
    /// The record as JSON; an error text when it could not be put into words.
    pub(super) record: Result<String, String>,
}

impl Row {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            id: record.id().to_string(),
            at_us: record.created_at().as_micros(),
            is_over: record.end().is_some(),
            record: serde_json::to_string(record).map_err(|error| error.to_string()),
        }
    }

    /// A record that is kept for its end.
    pub(super) fn of_grave(record: &Record) -> Self {
        let at_us = record.since().as_micros();
        Self {
            at_us,
            ..Self::of(record)
        }
    }
}

pub(super) fn read(text: &str) -> Result<Record, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Read(error.to_string()))
}
