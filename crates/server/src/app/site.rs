//! The state directory: one server's at a time.

mod error;
mod ours;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use barchan_daemon::folder;
use barchan_wire::local;
use barchan_wire::secret::Secret;

use crate::random;
pub use error::SiteError;
pub(crate) use error::advice;
pub use ours::check;

/// Largest file of ours that is read whole, in bytes.
const SMALL_FILE_BYTES_MAX: u64 = 4096;

/// How often a lock is tried whose holder may just be ending, and the time in between.
const LOCK_TRIES: usize = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// What tells this run of the host from others; empty where the system does not say.
pub(super) fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}

/// A state directory that this process holds, until this is dropped.
#[derive(Debug)]
pub(super) struct Site {
    dir: PathBuf,
    _lock: File,
}

/// Makes a state directory and the server's folder in it, where they are missing, and gives that
/// folder.
///
/// # Errors
/// When they cannot be made or written, others may write in them, or the folder is somebody's for
/// other things.
pub fn prepare(state: &Path) -> Result<PathBuf, SiteError> {
    check(state)?;
    let own = state.join(local::SERVER_FOLDER);
    for dir in [state, &own] {
        let failed = |what| {
            let path = dir.to_owned();
            move |source| SiteError::Io { what, path, source }
        };
        folder::make_private(dir).map_err(failed("make the directory"))?;
        let found = dir.metadata().map_err(failed("look at the directory"))?;
        if found.permissions().mode() & 0o022 != 0 {
            let path = dir.to_owned();
            return Err(SiteError::Open { path });
        }
    }
    folder::check_writable(&own).map_err(|source| SiteError::Io {
        what: "write in the state directory's folder",
        path: own.clone(),
        source,
    })?;
    move_older(state, &own)?;
    Ok(own)
}

/// Where these lay before the server had a folder of its own.
const OLDER: [&str; 7] = [
    "barchan.db-wal",
    "barchan.db-shm",
    "barchan.db",
    "api_key",
    "token_seed",
    "link_keys",
    "audit",
];

/// Moves what an earlier version left in the state directory, unless its server still runs.
fn move_older(state: &Path, own: &Path) -> Result<(), SiteError> {
    let Ok(lock) = folder::open_regular(&state.join("server.lock")) else {
        return Ok(());
    };
    if lock.try_lock().is_err() {
        return Err(held(state, &lock));
    }
    for name in OLDER {
        let (from, to) = (state.join(name), own.join(name));
        if from.symlink_metadata().is_ok() && to.symlink_metadata().is_err() {
            std::fs::rename(&from, &to).map_err(|source| SiteError::Io {
                what: "move into the server's folder",
                path: from,
                source,
            })?;
        }
    }
    let _ = std::fs::remove_file(state.join("server.lock"));
    Ok(())
}

fn held(state: &Path, lock: &File) -> SiteError {
    let holder = read_small(lock).unwrap_or_default();
    let unknown = || "(unknown)".to_owned();
    SiteError::Held {
        dir: state.to_owned(),
        holder: Some(holder)
            .filter(|it| !it.is_empty())
            .unwrap_or_else(unknown),
    }
}

/// What another user owns is that user's to fill: links in it lead wherever that one likes.
fn check_owner(dir: &Path) -> Result<(), SiteError> {
    let failed = |source| SiteError::Io {
        what: "look at",
        path: dir.to_owned(),
        source,
    };
    let owner = dir.metadata().map_err(failed)?.uid();
    let own = Path::new("/proc/self").metadata().map_err(failed)?.uid();
    match owner == own {
        true => Ok(()),
        false => Err(SiteError::Foreign {
            path: dir.to_owned(),
            owner,
            own,
        }),
    }
}

/// Takes the lock. Whoever was killed a moment ago holds it until the kernel has taken that process
/// down.
fn lock_soon(lock: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            outcome => return outcome,
        }
    }
    lock.try_lock()
}

impl Site {
    /// Makes the server's folder of a state directory if need be, and takes it.
    pub(super) fn take(state: &Path) -> Result<Self, SiteError> {
        let dir = &prepare(state)?;
        check_owner(dir)?;
        let path = state.join(local::SERVER_LOCK);
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| SiteError::Io { what, path, source }
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let lock =
            folder::open_regular_with(options.mode(0o600), &path).map_err(failed("open", &path))?;
        match lock_soon(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(state, &lock)),
            Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
        }
        write_pid(&lock).map_err(failed("write", &path))?;
        Ok(Self {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// A file or directory in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The random text of a file that only its owner may read; made at the first call.
    pub(super) fn secret(&self, name: &str) -> Result<Secret, SiteError> {
        let path = self.path(name);
        let failed = |what| {
            let path = path.clone();
            move |source| SiteError::Io { what, path, source }
        };
        match folder::open_regular(&path) {
            Ok(file) => {
                let found = file.metadata().map_err(failed("look at"))?;
                if found.permissions().mode() & 0o077 != 0 {
                    return Err(SiteError::Open { path });
                }
                let text = read_small(&file).map_err(failed("read"))?;
                if !text.is_empty() {
                    return Ok(Secret::new(text));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("open")(error)),
        }
        let secret = random::hex();
        self.write_secret(&path, &secret).map_err(failed("write"))?;
        Ok(Secret::new(secret))
    }

    /// Whole or not at all: a server killed at this moment leaves no half a key.
    fn write_secret(&self, path: &Path, secret: &str) -> io::Result<()> {
        let draft = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        writeln!(file, "{secret}")?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        File::open(&self.dir)?.sync_all()
    }
}

fn read_small(mut file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

fn write_pid(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_at_a_time_and_the_other_is_told_whose_it_is() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        let site = Site::take(&dir).unwrap();
        let error = Site::take(&dir).unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        drop(site);
        Site::take(&dir).unwrap();
    }

    #[test]
    fn secrets_are_long_private_and_stay() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("s");
        let site = Site::take(&dir).unwrap();
        let first = site.secret("api_key").unwrap();
        assert_eq!(first.reveal().len(), 64);
        assert_eq!(site.secret("api_key").unwrap(), first);
        assert_ne!(site.secret("other").unwrap(), first);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&site.path("api_key")), 0o600);
        assert_eq!(mode(&dir), 0o700);
        std::fs::set_permissions(site.path("api_key"), PermissionsExt::from_mode(0o644)).unwrap();
        let error = site.secret("api_key").unwrap_err().to_string();
        assert!(
            error.contains("chmod") && !error.contains(first.reveal()),
            "{error}"
        );
    }

    #[test]
    fn nobody_waits_for_what_is_no_file() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("s");
        let site = Site::take(&dir).unwrap();
        let make = |name: &str| {
            let made = std::process::Command::new("mkfifo")
                .arg(dir.join(name))
                .status();
            assert!(made.unwrap().success());
        };
        make("server/api_key");
        let error = site.secret("api_key").unwrap_err().to_string();
        assert!(error.contains("move it away"), "{error}");
        drop(site);
        std::fs::remove_file(dir.join("server/lock")).unwrap();
        make("server/lock");
        let error = Site::take(&dir).unwrap_err().to_string();
        assert!(error.contains("server/lock"), "{error}");
    }

    #[test]
    fn what_an_earlier_version_left_is_moved_once_its_server_is_gone() {
        let home = tempfile::tempdir().unwrap();
        for name in ["server.lock", "barchan.db", "api_key"] {
            let path = home.path().join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        let running = File::open(home.path().join("server.lock")).unwrap();
        running.try_lock().unwrap();
        let refused = Site::take(home.path());
        assert!(
            matches!(refused, Err(SiteError::Held { .. })),
            "{refused:?}"
        );
        let own = home.path().join("server");
        assert!(!own.join("barchan.db").exists());
        drop(running);
        let site = Site::take(home.path()).unwrap();
        assert_eq!(site.secret("api_key").unwrap().reveal(), "api_key");
        assert!(own.join("barchan.db").exists() && !home.path().join("barchan.db").exists());
        assert!(!home.path().join("server.lock").exists());
    }

    #[test]
    fn a_folder_of_another_user_is_not_trusted() {
        let home = tempfile::tempdir().unwrap();
        let own = prepare(home.path()).unwrap();
        if std::os::unix::fs::chown(&own, Some(60_601), None).is_err() {
            // Only root gives folders away.
            return;
        }
        let error = Site::take(home.path()).unwrap_err().to_string();
        assert!(
            error.contains("60601") && error.contains("server.user"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let home = tempfile::tempdir().unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(
            Site::take(home.path()),
            Err(SiteError::Open { .. })
        ));
    }
}
