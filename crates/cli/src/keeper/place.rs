//! Gives the server's folder of the state directory to the server's user, and nothing else there.
//!
//! What lies in that folder is the server's: it is walked without following a link, because the
//! server may have put one there.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};

use super::user::User;

/// How deep the server's folders lie in each other.
const DEPTH_MAX: usize = 3;
/// This program, whatever its path.
const PROGRAM: &str = "/proc/self/exe";
/// What nobody but root may enter, because files of images may be set to run as root.
const IMAGES: &str = "images";

/// The folder above a state directory through which this user cannot come.
fn barrier(state: &Path, user: User) -> Option<PathBuf> {
    let real = state.canonicalize().ok()?;
    let above = real.ancestors().skip(1);
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
    if let Some(barrier) = barrier(state, user) {
        bail!(
            "user {} cannot come through {} to the state directory: run `chmod o+x {1}`, or name \
             another directory with `store.state_dir`",
            user.uid,
            barrier.display()
        );
    }
    if !lets_through(Path::new(PROGRAM), user) {
        bail!(
            "user {} may not run this program: run `chmod o+x` on it",
            user.uid
        );
    }
    let given = open(CWD, &own).and_then(|folder| give(&folder, user, DEPTH_MAX));
    given.with_context(|| {
        format!(
            "cannot give {} to the server's user {}; `server.user = \"root\"` does without",
            own.display(),
            user.uid
        )
    })?;
    // Its user comes through to its own folder, and sees nothing on the way.
    let opened = chown(state, None, Some(user.gid))
        .and_then(|()| fs::set_permissions(state, Permissions::from_mode(0o710)));
    opened.with_context(|| format!("cannot let the server's user into {shown}"))?;
    let images = state.join(IMAGES);
    let closed = fs::create_dir_all(&images)
        .and_then(|()| fs::set_permissions(&images, Permissions::from_mode(0o700)));
    closed.with_context(|| format!("cannot close {}", images.display()))
}

fn open(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}

/// Gives away a folder and what is in it, the folder last: once it is the user's, all in it is.
fn give(folder: &OwnedFd, user: User, depth: usize) -> io::Result<()> {
    if is_given(&rustix::fs::fstat(folder)?, user) {
        return Ok(());
    }
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // What is looked at is what is given: a name may mean something else by then.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        let kind = rustix::fs::fstat(&found)?;
        match FileType::from_raw_mode(kind.st_mode) {
            FileType::Directory if depth > 0 => give(&open(folder, name)?, user, depth - 1)?,
            // A file with a second name may be anybody's: the server could have given it this one.
            _ if kind.st_nlink == 1 && !is_given(&kind, user) => give_one(&found, user)?,
            _ => {}
        }
    }
    give_one(folder, user)
}

fn give_one(found: &OwnedFd, user: User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let flags = AtFlags::EMPTY_PATH;
    Ok(rustix::fs::chownat(found, "", Some(uid), Some(gid), flags)?)
}

fn is_given(found: &Stat, user: User) -> bool {
    (found.st_uid, found.st_gid) == (user.uid, user.gid)
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
            let found = barrier(&at.join("a/b/c"), user);
            let expected = expected.map(|it| at.join(it).components().collect());
            assert_eq!(found, expected, "{home_mode:o} {a_mode:o}");
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
