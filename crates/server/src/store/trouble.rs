//! Pure. What stands in the way of the database, in words of people who run a server.

use rusqlite::ErrorCode;
use rusqlite_migration::{Error, MigrationDefinitionError};

/// Why something went wrong, and what to do.
pub(super) fn plainly(error: &rusqlite::Error) -> String {
    let words = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: make room on it",
        Some(ErrorCode::ReadOnly) => "it cannot be written: look at its rights and its file system",
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "look at its rights, and whether it is a file"
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "it is damaged or no database: put it back from a backup"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds it: end that one"
        }
        Some(ErrorCode::SystemIoFailure) => "the disk fails, or is full",
        _ => return error.to_string(),
    };
    format!("{words} ({error})")
}

/// The same where the database is brought to this program's version.
pub(super) fn of_versions(error: &Error) -> String {
    match error {
        Error::RusqliteError { err, .. } => plainly(err),
        Error::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead) => {
            "a newer version of this program has written it: start that one".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_operators_can_mend_is_said_plainly() {
        for (code, expected) in [
            (ffi::SQLITE_FULL, "the disk is full"),
            (ffi::SQLITE_READONLY, "cannot be written"),
            (ffi::SQLITE_CANTOPEN, "whether it is a file"),
            (ffi::SQLITE_NOTADB, "from a backup"),
            (ffi::SQLITE_CORRUPT, "from a backup"),
            (ffi::SQLITE_BUSY, "another program"),
            (ffi::SQLITE_IOERR_WRITE, "the disk fails"),
        ] {
            let err = || rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert!(plainly(&err()).contains(expected), "{}", plainly(&err()));
            let wrapped = Error::RusqliteError {
                query: String::new(),
                err: err(),
            };
            let told = of_versions(&wrapped);
            assert!(told.contains(expected) && !told.contains("query"), "{told}");
        }
    }
}
