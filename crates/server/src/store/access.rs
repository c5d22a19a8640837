//! Keys and tenants.

use rusqlite::{Connection, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Change, Receipt, Slot, StoreError};
use crate::access::{KeptAccess, Key, Tenant};

/// A change of them. What is written is JSON; an error text when it could not be put into words.
#[derive(Debug)]
pub(super) enum AccessChange {
    PutKey(String, Result<String, String>),
    RemoveKey(String),
    /// When keys were used last, in microseconds of the calendar. Brings none back.
    UseKeys(Vec<(String, i64)>),
    PutTenant(String, Result<String, String>),
    RemoveTenant(String),
}

impl AccessChange {
    /// Whether it must outlive a power cut.
    pub(super) fn lasts(&self) -> bool {
        !matches!(self, Self::UseKeys(_))
    }
}

impl Slot<'_> {
    /// Hands in a key to be written.
    pub fn put_key(self, key: &Key) -> Receipt {
        self.hand_in_access(AccessChange::PutKey(key.id.clone(), words(key)))
    }

    /// Hands in a key to be taken out.
    pub fn remove_key(self, id: &str) -> Receipt {
        self.hand_in_access(AccessChange::RemoveKey(id.to_owned()))
    }

    /// Hands in when keys were used last, in microseconds of the calendar.
    pub fn use_keys(self, uses: Vec<(String, i64)>) -> Receipt {
        self.hand_in_access(AccessChange::UseKeys(uses))
    }

    /// Hands in a tenant to be written.
    pub fn put_tenant(self, tenant: &Tenant) -> Receipt {
        let name = tenant.name.clone();
        self.hand_in_access(AccessChange::PutTenant(name, words(tenant)))
    }

    /// Hands in a tenant to be taken out.
    pub fn remove_tenant(self, name: &str) -> Receipt {
        self.hand_in_access(AccessChange::RemoveTenant(name.to_owned()))
    }

    fn hand_in_access(self, change: AccessChange) -> Receipt {
        self.hand_in(Change::Access(change))
    }
}

fn words(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// Writes a change.
pub(super) fn write(
    transaction: &Transaction<'_>,
    change: &AccessChange,
) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Write(error.to_string());
    let run = |query: &str, values: &[&dyn rusqlite::ToSql]| {
        transaction
            .prepare_cached(query)
            .and_then(|mut query| query.execute(values))
            .map(drop)
            .map_err(failed)
    };
    let known = |words: &Result<String, String>| words.clone().map_err(StoreError::Write);
    match change {
        AccessChange::PutKey(id, words) => run(
            "INSERT INTO api_keys (id, key) VALUES (?1, ?2)
             ON CONFLICT (id) DO UPDATE SET key = excluded.key",
            params![id, known(words)?],
        ),
        AccessChange::RemoveKey(id) => run("DELETE FROM api_keys WHERE id = ?1", params![id]),
        AccessChange::UseKeys(uses) => uses.iter().try_for_each(|(id, used_us)| {
            let query = "UPDATE api_keys SET used_us = ?2 WHERE id = ?1";
            run(query, params![id, used_us])
        }),
        AccessChange::PutTenant(name, words) => run(
            "INSERT INTO tenants (name, tenant) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET tenant = excluded.tenant",
            params![name, known(words)?],
        ),
        AccessChange::RemoveTenant(name) => {
            run("DELETE FROM tenants WHERE name = ?1", params![name])
        }
    }
}

/// Reads all that is kept of them.
pub(super) fn load(database: &Connection) -> Result<KeptAccess, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Read(error.to_string());
    let rows = |query: &str| -> rusqlite::Result<Vec<(String, Option<i64>)>> {
        let mut query = database.prepare(query)?;
        let rows = query.query_map([], |line| Ok((line.get(0)?, line.get(1)?)))?;
        rows.collect()
    };
    let keys = rows("SELECT key, used_us FROM api_keys").map_err(failed)?;
    let tenants = rows("SELECT tenant, NULL FROM tenants").map_err(failed)?;
    let keys = keys.iter().map(|(key, used_us)| Ok((read(key)?, *used_us)));
    let tenants = tenants.iter().map(|(tenant, _)| read(tenant));
    Ok(KeptAccess {
        keys: keys.collect::<Result<_, StoreError>>()?,
        tenants: tenants.collect::<Result<_, _>>()?,
    })
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Read(error.to_string()))
}
