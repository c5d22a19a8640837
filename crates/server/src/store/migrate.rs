//! The database's versions. A released step never changes; the next one is appended.

use rusqlite_migration::{M, Migrations};

const STEPS: &[M<'static>] = &[M::up(
    "CREATE TABLE sandboxes (
        id TEXT PRIMARY KEY,
        created_us INTEGER NOT NULL,
        record TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
)];

/// All steps from an empty database to this version.
pub(super) const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);
