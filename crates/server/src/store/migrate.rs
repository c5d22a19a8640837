//! The database's versions. A released step never changes; the next one is appended.

use rusqlite_migration::{M, Migrations};

const STEPS: &[M<'static>] = &[
    M::up(
        "CREATE TABLE sandboxes (
            id TEXT PRIMARY KEY,
            created_us INTEGER NOT NULL,
            record TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
    M::up(
        "CREATE TABLE commands_once (
            number INTEGER PRIMARY KEY,
            sandbox TEXT NOT NULL,
            key TEXT NOT NULL,
            place INTEGER NOT NULL,
            fingerprint BLOB NOT NULL,
            command TEXT NOT NULL,
            begun_us INTEGER NOT NULL,
            status INTEGER,
            kind TEXT,
            is_whole INTEGER,
            result BLOB,
            UNIQUE (sandbox, key)
        ) STRICT;
        CREATE INDEX commands_once_by_place ON commands_once (sandbox, place);
        CREATE INDEX commands_once_by_time ON commands_once (begun_us);
        CREATE INDEX commands_once_with_result ON commands_once (number)
            WHERE result IS NOT NULL;",
    ),
    M::up(
        "CREATE TABLE graves (
            id TEXT PRIMARY KEY,
            ended_us INTEGER NOT NULL,
            record TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE pools (
            name TEXT PRIMARY KEY,
            pool TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE facts (
            name TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
    M::up(
        "CREATE TABLE api_keys (
            id TEXT PRIMARY KEY,
            key TEXT NOT NULL,
            used_us INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tenants (
            name TEXT PRIMARY KEY,
            tenant TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
    M::up(
        "CREATE TABLE snapshots (
            id TEXT PRIMARY KEY,
            created_us INTEGER NOT NULL,
            owner TEXT NOT NULL DEFAULT '',
            record TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
    M::up(
        "CREATE TABLE approvals (
            id TEXT PRIMARY KEY,
            asked_us INTEGER NOT NULL,
            record TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
    M::up(
        "CREATE TABLE vaults (
            id TEXT PRIMARY KEY,
            vault BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;",
    ),
];

/// All steps from an empty database to this version.
pub(super) const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);
