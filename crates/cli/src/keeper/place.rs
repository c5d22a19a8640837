//! Gives the server's folder of the state directory to the server's user, and nothing else there.
//!
//! What lies in that folder is the server's: it is walked without following a link, because the
//! server may have put one there.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};

use super::user::User;

/// How deep the server's folders lie in each other.
const DEPTH_MAX: usize = 3;
/// What nobody but root may enter, because files of images may be set to run as root.
const IMAGES: &str = "images";

/// The folder above a state directory through which this user cannot come.
pub(super) fn barrier(state: &Path, user: User) -> Option<PathBuf> {
    // Of a path that is not there yet, what is there decides; the rest is made with it.
    let known = state
        .ancestors()
        .find_map(|path| path.canonicalize().ok())?;
    let above = known.ancestors().skip(usize::from(state.exists()));
    above
        .filter(|path| !lets_through(path, user))
        .last()
        .map(Path::to_owned)
}

fn lets_through(folder: &Path, user: User) -> bool {
    let Ok(found) = folder.metadata() else {
        return false;
    };
    let bit = match (found.uid() == user.uid, found.gid() == user.gid) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    found.mode() & bit != 0
}

/// Makes the state directory ready for a server that runs as this user.
pub(super) fn prepare(state: &Path, user: User) -> Result<()> {
    let shown = state.display();
    let own = barchan_server::app::prepare(state)?;
    // Its user comes through to its own folder, and sees nothing on the way.
    let opened = chown(state, None, Some(user.gid))
        .and_then(|()| fs::set_permissions(state, Permissions::from_mode(0o710)));
    opened.with_context(|| format!("cannot let the server's user into {shown}"))?;
    let images = state.join(IMAGES);
    let closed = fs::create_dir_all(&images)
        .and_then(|()| fs::set_permissions(&images, Permissions::from_mode(0o700)));
    closed.with_context(|| format!("cannot close {}", images.display()))?;
    let given = open(CWD, &own).and_then(|folder| give(&folder, user, DEPTH_MAX));
    given.with_context(|| {
        format!(
            "cannot give {} to the server's user {}; `server.user = \"root\"` does without",
            own.display(),
            user.uid
        )
    })
}

fn open(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}

/// Gives away a folder and what is in it.
fn give(folder: &OwnedFd, user: User, depth: usize) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let found = rustix::fs::fstat(folder)?;
    if (found.st_uid, found.st_gid) != (user.uid, user.gid) {
        rustix::fs::fchown(folder, Some(uid), Some(gid))?;
    }
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth > 0 => give(&open(folder, name)?, user, depth - 1)?,
            _ if is_to_be_given(&found, user) => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(folder, name, Some(uid), Some(gid), flags)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A file with a second name may be anybody's: the server could have given it this one.
fn is_to_be_given(found: &Stat, user: User) -> bool {
    let is_another = (found.st_uid, found.st_gid) != (user.uid, user.gid);
    is_another && found.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_that_the_user_cannot_walk_through_is_named() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("a/b/c")).unwrap();
        let owner = at.metadata().unwrap();
        let stranger = User {
            uid: 61_234,
            gid: 61_235,
        };
        let same_group = User {
            gid: owner.gid(),
            ..stranger
        };
        for (home_mode, a_mode, user, expected) in [
            (0o711, 0o711, stranger, None),
            (0o711, 0o710, stranger, Some("a")),
            (0o711, 0o710, same_group, None),
            (0o700, 0o700, stranger, Some("")),
        ] {
            let close = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
            close(&at.join("a"), a_mode).unwrap();
            close(&at, home_mode).unwrap();
            for state in ["a/b/c", "a/b/not/yet"] {
                let found = barrier(&at.join(state), user);
                let expected = expected.map(|it| at.join(it).components().collect());
                assert_eq!(found, expected, "{home_mode:o} {a_mode:o} {state}");
            }
        }
    }

    #[test]
    fn the_servers_files_are_given_and_others_left() {
        if !rustix::process::geteuid().is_root() {
            // Only root gives files away.
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let (state, own) = (home.path().join("state"), home.path().join("state/server"));
        fs::create_dir_all(own.join("audit")).unwrap();
        for file in [
            "state/server/barchan.db",
            "state/server/audit/changes",
            "mine",
        ] {
            fs::write(home.path().join(file), file).unwrap();
        }
        symlink(home.path().join("mine"), own.join("link")).unwrap();
        fs::hard_link(home.path().join("mine"), own.join("second-name")).unwrap();
        let user = User {
            uid: 61_234,
            gid: 61_235,
        };
        prepare(&state, user).unwrap();
        let owner = |path: &Path| {
            let found = path.symlink_metadata().unwrap();
            (found.uid(), found.gid())
        };
        for file in ["", "barchan.db", "audit", "audit/changes", "link"] {
            assert_eq!(owner(&own.join(file)), (61_234, 61_235), "{file}");
        }
        assert_eq!(owner(&home.path().join("mine")), (0, 0));
        assert_eq!(owner(&state), (0, 61_235));
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode(&state), mode(&state.join("images"))), (0o710, 0o700));
        // Again, and for another.
        let next = User { uid: 7, gid: 8 };
        prepare(&state, next).unwrap();
        assert_eq!(owner(&own.join("barchan.db")), (7, 8));
    }
}
