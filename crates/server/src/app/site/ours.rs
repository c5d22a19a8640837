//! Whether a folder may become a state directory: making it one changes its rights.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::SiteError;

/// What only a program of ours leaves in a state directory: a server, today's or an earlier
/// version's, the image store, a launcher.
const MARKS: [&str; 6] = [
    "images/lock",
    "jail/lock",
    "server/lock",
    "server/barchan.db",
    "server.lock",
    "barchan.db",
];
/// All that lies in a state directory before a server was started there; others have folders of
/// such names, too, but not these alone.
const NAMES: [&str; 7] = [
    "server",
    "images",
    "jail",
    "guests",
    "start.lock",
    "private-server.log",
    // A file system of its own has it from the beginning.
    "lost+found",
];

/// What people put beside it for the server's own sake: its settings, and what it prints.
const KINDS: [&str; 2] = ["toml", "log"];

/// Refuses a folder that is neither ours nor empty.
///
/// # Errors
/// With the name of what is not ours, or when it cannot be looked at.
pub fn check(state: &Path) -> Result<(), SiteError> {
    if MARKS
        .iter()
        .any(|mark| state.join(mark).symlink_metadata().is_ok())
    {
        return Ok(());
    }
    match stranger(state) {
        Ok(None) => Ok(()),
        // A server that was started by a keeper may not look, and that one has.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        Ok(Some(found)) => Err(SiteError::Stranger {
            dir: state.to_owned(),
            found,
        }),
        Err(source) => Err(SiteError::Io {
            what: "look into",
            path: state.to_owned(),
            source,
        }),
    }
}

fn stranger(state: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(state)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = Path::new(&name).extension();
        let is_kind = kind.is_some_and(|kind| KINDS.iter().any(|it| kind == *it));
        let is_its = is_kind && entry.file_type()?.is_file();
        if !is_its && !NAMES.iter().any(|ours| name == **ours) {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_or_one_of_ours_becomes_a_state_directory() {
        for (files, stranger) in [
            (&[][..], None),
            (&["lost+found/x"], None),
            (&["barchan.toml", "server.log"], None),
            (&["barchan.toml", "notes.txt"], Some("notes.txt")),
            (&["x.toml/y"], Some("x.toml")),
            (&["images/index", "jail/launcher.log", "start.lock"], None),
            (&["images/lock", "volumes/x", "mnt/x", "disk/x"], None),
            (&["jail/lock", "disk/x"], None),
            (&["server/lock", "notes.txt"], None),
            (&["barchan.db", "notes.txt"], None),
            (&["server.lock", "notes.txt"], None),
            (&["notes.txt"], Some("notes.txt")),
            (&[".git/config", "server/main.py"], Some(".git")),
            (&["start.lock", "src/main.rs"], Some("src")),
        ] {
            let home = tempfile::tempdir().unwrap();
            for file in files {
                let path = home.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let found = match check(home.path()) {
                Ok(()) => None,
                Err(SiteError::Stranger { found, .. }) => Some(found),
                Err(other) => panic!("{files:?}: {other}"),
            };
            assert_eq!(found.as_deref(), stranger, "{files:?}");
            let again = super::super::prepare(home.path());
            assert_eq!(again.is_err(), stranger.is_some(), "{files:?}");
            let is_touched = home.path().join("server").exists();
            let was_there = files.iter().any(|file| file.starts_with("server/"));
            assert_eq!(is_touched, stranger.is_none() || was_there, "{files:?}");
        }
        assert!(check(Path::new("/nonexistent/state")).is_ok());
    }
}
