//! Vaults of sandboxes, sealed: nothing here can read them.

use barchan_wire::id::SandboxId;
use rusqlite::{Connection, Transaction, params};

use super::{Change, Receipt, Slot, StoreError};

/// What is kept of a vault.
#[derive(Debug)]
pub struct SealedVault {
    /// The sandbox.
    pub sandbox: String,
    /// The rest, unreadable.
    pub bytes: Vec<u8>,
}

impl Slot<'_> {
    /// Hands in a sealed vault to be written.
    pub(crate) fn put_vault(self, id: &SandboxId, bytes: Vec<u8>) -> Receipt {
        let sandbox = id.to_string();
        self.hand_in(Change::PutVault(SealedVault { sandbox, bytes }))
    }

    /// Hands in vaults to be taken out.
    pub(crate) fn remove_vaults(self, ids: Vec<String>) -> Receipt {
        self.hand_in(Change::RemoveVaults(ids))
    }
}

pub(super) fn put(transaction: &Transaction<'_>, vault: &SealedVault) -> Result<(), StoreError> {
    let query = "INSERT INTO vaults (id, vault) VALUES (?1, ?2)
         ON CONFLICT (id) DO UPDATE SET vault = excluded.vault";
    transaction
        .prepare_cached(query)
        .and_then(|mut put| put.execute(params![vault.sandbox, vault.bytes]))
        .map(drop)
        .map_err(|error| StoreError::Write(error.to_string()))
}

/// Reads all that are kept.
pub(super) fn read_all(database: &Connection) -> Result<Vec<SealedVault>, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let query = "SELECT id, vault FROM vaults";
    let mut query = database.prepare(query).map_err(failed)?;
    let rows = query.query_map([], |line| {
        Ok(SealedVault {
            sandbox: line.get(0)?,
            bytes: line.get(1)?,
        })
    });
    rows.map_err(failed)?
        .map(|row| row.map_err(failed))
        .collect()
}
