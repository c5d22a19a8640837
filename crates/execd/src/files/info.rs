//! What is known about a path.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use barchan_wire::execd::file::{FileInfo, FileKind, Mode};
use barchan_wire::execd::moment;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, StatxTimestamp, statx};

use super::expand::escape;
use super::spelling::Spelling;
use crate::fault::Fault;
use crate::small_file;
use crate::users::Users;

/// Looks at a path itself, not at what a link points to.
///
/// # Errors
/// When there is nothing, or it may not be looked at.
pub(crate) fn look(path: &Path) -> Result<Statx, Fault> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)
        .map_err(|errno| Fault::of_path(errno, "look at", escape(path.as_os_str().as_bytes())))
}

/// The type of what was looked at.
pub(crate) fn file_type(found: &Statx) -> FileType {
    FileType::from_raw_mode(u32::from(found.stx_mode))
}

/// Tells callers of files: names for numbers, and a spelling for paths.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// Who owns files.
    pub(crate) users: Users,
    /// How paths are written.
    pub(crate) spelling: Spelling,
}

impl Teller {
    /// With the users as they are now.
    pub(crate) fn new(spelling: Spelling) -> Self {
        let users = small_file::users();
        Self { users, spelling }
    }

    /// What callers are told of what was looked at.
    pub(crate) fn describe(&self, path: &Path, found: &Statx) -> FileInfo {
        let kind = match file_type(found) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            _ => FileKind::Other,
        };
        let at = |time: StatxTimestamp| moment::from_unix(time.tv_sec, time.tv_nsec);
        let born = found.stx_mask & StatxFlags::BTIME.bits() != 0 && found.stx_btime.tv_sec != 0;
        FileInfo {
            path: self.spelling.write(path),
            kind: Some(kind),
            size: found.stx_size,
            modified_at: at(found.stx_mtime),
            created_at: at(if born {
                found.stx_btime
            } else {
                found.stx_mtime
            }),
            owner: self.users.user_name(found.stx_uid),
            group: self.users.group_name(found.stx_gid),
            mode: Mode::from_bits(u32::from(found.stx_mode)),
        }
    }
}
