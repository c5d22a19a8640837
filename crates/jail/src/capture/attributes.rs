//! Owners, modes, times and extended attributes of what is copied.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fgetxattr, flistxattr,
    fremovexattr, fsetxattr,
};
use rustix::io::Errno;

use crate::ids::RANGE;

/// Linux keeps neither longer lists nor longer values.
const BYTES_MAX: usize = 64 * 1024;
/// Who owns what belongs to nobody of the sandbox.
const NOBODY: u32 = 65_534;
/// What overlayfs notes in a layer.
pub(crate) const OVERLAY: &[u8] = b"user.overlay.";
/// Access lists name users by their numbers on the host.
pub(crate) const ACCESS_LIST: &[u8] = b"system.posix_acl_";
/// The list that whatever is made in a folder begins with.
const DEFAULT_LIST: &CStr = c"system.posix_acl_default";
/// The capabilities of a file.
const CAPABILITY: &[u8] = b"security.capability";
/// Version 2 of an access list, and the entries of it that name somebody.
const ACL_VERSION: [u8; 4] = [2, 0, 0, 0];
const ACL_USER: u16 = 0x02;
const ACL_GROUP: u16 = 0x08;

/// How ids of what is copied become ids of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// Root's id in what is copied.
    pub from: u32,
    /// Root's id in the copy.
    pub to: u32,
}

impl Ids {
    /// Whether all stay as they are.
    pub(crate) fn is_none(self) -> bool {
        self.from == self.to
    }

    /// The copy's id of somebody.
    pub(crate) fn of(self, id: u32) -> u32 {
        match self.is_none() {
            true => id,
            false => self.to + inner(id, self.from),
        }
    }
}

/// The id inside of somebody outside.
pub(crate) fn inner(id: u32, base: u32) -> u32 {
    let inner = id.checked_sub(base).filter(|inner| *inner < RANGE);
    inner.unwrap_or(NOBODY)
}

/// Gives an open copy its owner, mode and extended attributes.
///
/// # Errors
/// The kernel's, and for an attribute that cannot be kept its name.
pub(super) fn copy(source: impl AsFd, copy: impl AsFd, found: &Stat, ids: Ids) -> io::Result<()> {
    let (user, group) = owner(found, ids);
    rustix::fs::fchown(&copy, Some(user), Some(group))?;
    rustix::fs::fchmod(&copy, Mode::from_raw_mode(found.st_mode & 0o7777))?;
    extended(source, copy, ids)
}

/// Gives a copy its owner, by its name.
///
/// # Errors
/// The kernel's, unchanged.
pub(super) fn own(folder: impl AsFd, name: &CStr, found: &Stat, ids: Ids) -> io::Result<()> {
    let (user, group) = owner(found, ids);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(folder, name, Some(user), Some(group), flags)?;
    Ok(())
}

fn owner(found: &Stat, ids: Ids) -> (Uid, Gid) {
    let (user, group) = (ids.of(found.st_uid), ids.of(found.st_gid));
    (Uid::from_raw(user), Gid::from_raw(group))
}

/// When an entry was last read and changed.
pub(crate) fn times(found: &Stat) -> Timestamps {
    let at = |seconds: i64, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    Timestamps {
        last_access: at(found.st_atime, found.st_atime_nsec as _),
        last_modification: at(found.st_mtime, found.st_mtime_nsec as _),
    }
}

/// Times that say which folder a copy is of.
pub(super) fn identity(found: &Stat) -> Timestamps {
    let stamp = Timespec {
        tv_sec: found.st_ino as i64,
        tv_nsec: 0,
    };
    Timestamps {
        last_access: stamp,
        last_modification: stamp,
    }
}

/// Whether a copy is of this folder.
pub(super) fn is_copy_of(copy: &Stat, found: &Stat) -> bool {
    copy.st_mtime == found.st_ino as i64 && copy.st_mtime_nsec == 0
}

/// Gives a folder's copy the access list of what is made in it from now on: nothing of the copy
/// may be made after that, as it would have the list too.
///
/// # Errors
/// The kernel's, unchanged.
pub(super) fn bequeath(source: impl AsFd, copy: impl AsFd, ids: Ids) -> io::Result<()> {
    let list = match value(source, DEFAULT_LIST) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => None,
        list => list?,
    };
    let Some(list) = list else { return Ok(()) };
    Ok(fsetxattr(
        copy,
        DEFAULT_LIST,
        &shifted(list, |id| ids.of(id)),
        XattrFlags::empty(),
    )?)
}

/// Gives a new folder all that an old one has: owner, mode, attributes and times.
///
/// # Errors
/// The kernel's, unchanged.
pub(crate) fn inherit(source: impl AsFd, copied: impl AsFd, ids: Ids) -> io::Result<()> {
    let found = rustix::fs::fstat(&source)?;
    copy(&source, &copied, &found, ids)?;
    bequeath(&source, &copied, ids)?;
    Ok(rustix::fs::futimens(copied, &times(&found))?)
}

/// Takes the extended attributes away that an earlier walk gave to a copy.
///
/// # Errors
/// The kernel's, unchanged.
pub(super) fn forget(copy: impl AsFd, ids: Ids) -> io::Result<()> {
    for name in names(&copy)? {
        // Those of the host's own policy stay.
        if fate(name.to_bytes(), ids) != Fate::Leave {
            fremovexattr(&copy, name.as_c_str())?;
        }
    }
    Ok(())
}

/// The names of a file's extended attributes.
///
/// # Errors
/// The kernel's; a file system without any has none.
pub(crate) fn names(file: impl AsFd) -> io::Result<Vec<CString>> {
    let mut list = Vec::with_capacity(BYTES_MAX);
    match flistxattr(file, spare_capacity(&mut list)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno.into()),
    }
    let names = list.split_inclusive(|&byte| byte == 0);
    let names = names.filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    Ok(names.map(CStr::to_owned).collect())
}

fn extended(source: impl AsFd, copy: impl AsFd, ids: Ids) -> io::Result<()> {
    for name in names(&source)? {
        let name = name.as_c_str();
        let kept = match fate(name.to_bytes(), ids) {
            Fate::Keep => value(&source, name)?,
            Fate::Shift => value(&source, name)?.map(|list| shifted(list, |id| ids.of(id))),
            Fate::Leave => None,
            Fate::Refuse => {
                let words = "the writable layer holds files of which it has only a part";
                return Err(io::Error::other(words));
            }
        };
        let Some(kept) = kept else { continue };
        set(&copy, name, &kept)?;
    }
    Ok(())
}

/// Gives a file an attribute.
///
/// # Errors
/// The kernel's, with the attribute's name.
pub(crate) fn set(file: impl AsFd, name: &CStr, value: &[u8]) -> io::Result<()> {
    fsetxattr(file, name, value, XattrFlags::empty()).map_err(|errno| {
        let shown: String = name.to_string_lossy().chars().take(64).collect();
        let words = format!("keep the attribute {shown:?}: {errno}");
        io::Error::new(io::Error::from(errno).kind(), words)
    })
}

/// An attribute's value, unless it is gone again.
///
/// # Errors
/// The kernel's, unchanged.
pub(crate) fn value(source: impl AsFd, name: &CStr) -> io::Result<Option<Vec<u8>>> {
    let mut value = Vec::with_capacity(BYTES_MAX);
    match fgetxattr(source, name, spare_capacity(&mut value)) {
        Ok(_) => Ok(Some(value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Shift,
    Leave,
    Refuse,
}

fn fate(name: &[u8], ids: Ids) -> Fate {
    if let Some(word) = name.strip_prefix(OVERLAY) {
        return match word {
            b"metacopy" | b"redirect" => Fate::Refuse,
            b"opaque" | b"whiteout" | b"whiteouts" => Fate::Keep,
            // What an overlay inside the sandbox notes.
            _ if word.starts_with(b"overlay.") => Fate::Keep,
            // Where a file came from: true only for the mount that wrote it.
            _ => Fate::Leave,
        };
    }
    match name {
        _ if name.starts_with(b"user.") => Fate::Keep,
        // Given last of all.
        _ if name == DEFAULT_LIST.to_bytes() => Fate::Leave,
        _ if name.starts_with(ACCESS_LIST) => Fate::Shift,
        // File capabilities do nothing in a sandbox but what its own programs make of them; on the
        // host they would.
        _ if name == CAPABILITY && ids.is_none() => Fate::Keep,
        _ => Fate::Leave,
    }
}

/// An access list with other ids.
// BOUNDARY: sandbox → host. Test: access_lists_name_the_ids_of_the_sandbox
pub(crate) fn shifted(mut list: Vec<u8>, shift: impl Fn(u32) -> u32) -> Vec<u8> {
    let Some(entries) = list.strip_prefix(&ACL_VERSION) else {
        return list;
    };
    let at = list.len() - entries.len();
    for entry in list.get_mut(at..).unwrap_or_default().chunks_exact_mut(8) {
        let [tag_low, tag_high, _, _, id @ ..] = entry else {
            continue;
        };
        let tag = u16::from_le_bytes([*tag_low, *tag_high]);
        if let (ACL_USER | ACL_GROUP, Ok(bytes)) = (tag, <[u8; 4]>::try_from(&*id)) {
            id.copy_from_slice(&shift(u32::from_le_bytes(bytes)).to_le_bytes());
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_lists_name_the_ids_of_the_sandbox() {
        let entry = |tag: u16, id: u32| {
            let permissions = 7u16.to_le_bytes();
            [&tag.to_le_bytes()[..], &permissions, &id.to_le_bytes()].concat()
        };
        let list = |ids: [u32; 3]| {
            let entries = [entry(1, u32::MAX), entry(2, ids[0]), entry(8, ids[1])];
            [&ACL_VERSION[..], &entries.concat(), &entry(2, ids[2])].concat()
        };
        let shifted = |list| shifted(list, |id| inner(id, 1_000_000_000));
        let outside = list([1_000_000_007, 1_000_000_000, 12]);
        assert_eq!(shifted(outside), list([7, 0, NOBODY]));
        for odd in [vec![], vec![2, 0], vec![2, 0, 0, 0, 2], vec![9; 12]] {
            assert_eq!(shifted(odd.clone()), odd);
        }
    }

    #[test]
    fn attributes_have_their_fates() {
        let ids = |to| Ids { from: 1 << 30, to };
        let capability = fate(CAPABILITY, ids(1 << 30));
        assert_eq!(capability, Fate::Keep, "in the same sandbox");
        for (name, expected) in [
            (&b"user.note"[..], Fate::Keep),
            (b"user.overlay.opaque", Fate::Keep),
            (b"user.overlay.overlay.opaque", Fate::Keep),
            (b"user.overlay.origin", Fate::Leave),
            (b"user.overlay.metacopy", Fate::Refuse),
            (b"trusted.overlay.opaque", Fate::Leave),
            (b"security.capability", Fate::Leave),
            (b"system.posix_acl_access", Fate::Shift),
            (b"system.posix_acl_default", Fate::Leave),
        ] {
            let shown = String::from_utf8_lossy(name);
            assert_eq!(fate(name, ids(0)), expected, "{shown}");
        }
    }
}
