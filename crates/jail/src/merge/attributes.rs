//! Owners, modes and extended attributes of what is copied into a merged layer.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, Stat, Uid};
use rustix::io::Errno;

use crate::capture::Ids;
use crate::capture::attributes::{ACCESS_LIST, OVERLAY, names, set, shifted, value};
use crate::ids::RANGE;

/// Version 2 of file capabilities, and version 3, which ends with whose root gave them.
const CAPABILITIES_2: [u8; 4] = [0, 0, 0, 2];
const CAPABILITIES_3: [u8; 4] = [0, 0, 0, 3];
/// The bits of the version; the lowest of the others says whether they are effective.
const VERSION: usize = 3;
/// How long version 2 is, in bytes.
const CAPABILITIES_BYTES: usize = 20;

fn owner(ids: Ids, found: &Stat) -> (Option<Uid>, Option<Gid>) {
    let (user, group) = (ids.of(found.st_uid), ids.of(found.st_gid));
    (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
}

/// Gives an open copy its owner, mode and extended attributes, also the access list of what is made
/// in a folder from now on.
///
/// # Errors
/// The kernel's, and for an attribute that cannot be kept its name.
pub(super) fn give(
    source: impl AsFd,
    copy: BorrowedFd<'_>,
    found: &Stat,
    shift: Ids,
) -> io::Result<()> {
    let (user, group) = owner(shift, found);
    rustix::fs::fchown(copy, user, group)?;
    rustix::fs::fchmod(copy, mode(found))?;
    for name in names(&source)? {
        let name = name.as_c_str();
        let kept = match fate(name.to_bytes()) {
            Fate::Keep => value(&source, name)?,
            Fate::Shift => value(&source, name)?.map(|list| shifted(list, |id| shift.of(id))),
            // On the host's own files they would be everybody's.
            Fate::Capabilities if shift.to == 0 && !shift.is_none() => None,
            Fate::Capabilities => match value(&source, name) {
                // They are those of a root that is nobody here.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::OVERFLOW) => None,
                found => found?.and_then(|found| capabilities(found, shift)),
            },
            Fate::Leave => None,
            Fate::Refuse => {
                let shown: String = name.to_string_lossy().chars().take(64).collect();
                let words = format!("a layer has {shown:?}, which needs another way of mounting");
                return Err(io::Error::other(words));
            }
        };
        if let Some(kept) = kept {
            set(copy, name, &kept)?;
        }
    }
    Ok(())
}

/// Gives a copy its owner and, if it has one, its mode, by its name.
///
/// # Errors
/// The kernel's, unchanged.
pub(super) fn give_by_name(
    made: BorrowedFd<'_>,
    name: &CStr,
    found: &Stat,
    shift: Ids,
    has_mode: bool,
) -> io::Result<()> {
    let (user, group) = owner(shift, found);
    rustix::fs::chownat(made, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
    if has_mode {
        rustix::fs::chmodat(made, name, mode(found), AtFlags::empty())?;
    }
    Ok(())
}

fn mode(found: &Stat) -> Mode {
    Mode::from_raw_mode(found.st_mode & 0o7777)
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Shift,
    Capabilities,
    Leave,
    Refuse,
}

fn fate(name: &[u8]) -> Fate {
    if let Some(word) = name.strip_prefix(OVERLAY) {
        return match word {
            // What an overlay inside the sandbox notes.
            _ if word.starts_with(b"overlay.") => Fate::Keep,
            // Told afresh.
            b"opaque" | b"whiteout" | b"whiteouts" | b"origin" => Fate::Leave,
            // Read from the writable layer alone.
            b"impure" | b"nlink" | b"upper" | b"uuid" | b"protattr" => Fate::Leave,
            // Parts of files, redirected folders, and what a later kernel may note.
            _ => Fate::Refuse,
        };
    }
    match name {
        _ if name.starts_with(b"user.") || name.starts_with(b"trusted.") => Fate::Keep,
        _ if name.starts_with(ACCESS_LIST) => Fate::Shift,
        b"security.capability" => Fate::Capabilities,
        // The host's own policy labels what is new.
        _ => Fate::Leave,
    }
}

/// File capabilities that the root of the result gave, if that of the layer did; `None` if somebody
/// else's root did, for whom alone they mean something. Those of the host's root are everybody's.
// BOUNDARY: sandbox → host. Test: capabilities_are_of_the_root_that_gave_them
fn capabilities(mut value: Vec<u8>, shift: Ids) -> Option<Vec<u8>> {
    if shift.is_none() {
        return Some(value);
    }
    let version = |value: &[u8]| value.get(VERSION).copied();
    if version(&value) == version(&CAPABILITIES_2) {
        if shift.from == 0 {
            *value.get_mut(VERSION)? = version(&CAPABILITIES_3)?;
            value.extend(shift.to.to_le_bytes());
        }
        return Some(value);
    }
    let root = value.get_mut(CAPABILITIES_BYTES..)?;
    let found = u32::from_le_bytes((&*root).try_into().ok()?);
    found.checked_sub(shift.from).filter(|id| *id < RANGE)?;
    root.copy_from_slice(&shift.of(found).to_le_bytes());
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Ids = Ids {
        from: 0,
        to: 1_000_000_000,
    };
    const DOWN: Ids = Ids {
        from: 1_000_000_000,
        to: 0,
    };

    #[test]
    fn capabilities_are_of_the_root_that_gave_them() {
        let version_2 = || [&[1, 0, 0, 2][..], &[7; 16]].concat();
        let version_3 = |root: u32| [&[1, 0, 0, 3][..], &[7; 16], &root.to_le_bytes()].concat();
        let none = Ids { from: 7, to: 7 };
        for (value, shift, expected) in [
            (version_2(), UP, Some(version_3(1_000_000_000))),
            (version_2(), DOWN, Some(version_2())),
            (version_2(), none, Some(version_2())),
            (version_3(1_000_000_009), DOWN, Some(version_3(9))),
            (version_3(9), UP, Some(version_3(1_000_000_009))),
            (version_3(5), none, Some(version_3(5))),
            (version_3(999_999_999), DOWN, None),
            (version_3(1_000_065_536), DOWN, None),
            (vec![], UP, None),
            (vec![1, 0, 0, 3, 1], UP, None),
        ] {
            assert_eq!(capabilities(value.clone(), shift), expected, "{value:?}");
        }
    }

    #[test]
    fn ids_of_a_layer_become_those_of_the_result() {
        let none = Ids { from: 7, to: 7 };
        for (shift, id, expected) in [
            (UP, 0, 1_000_000_000),
            (UP, 65_535, 1_000_065_535),
            (UP, 65_536, 1_000_065_534),
            (DOWN, 1_000_000_033, 33),
            (DOWN, 33, 65_534),
            (none, 70_000, 70_000),
        ] {
            assert_eq!(shift.of(id), expected, "{shift:?} {id}");
        }
    }

    #[test]
    fn attributes_have_their_fates() {
        for (name, expected) in [
            (&b"user.note"[..], Fate::Keep),
            (b"trusted.note", Fate::Keep),
            (b"trusted.overlay.opaque", Fate::Keep),
            (b"user.overlay.overlay.whiteout", Fate::Keep),
            (b"user.overlay.opaque", Fate::Leave),
            (b"user.overlay.origin", Fate::Leave),
            (b"user.overlay.impure", Fate::Leave),
            (b"user.overlay.metacopy", Fate::Refuse),
            (b"user.overlay.redirect", Fate::Refuse),
            (b"user.overlay.later", Fate::Refuse),
            (b"security.capability", Fate::Capabilities),
            (b"security.selinux", Fate::Leave),
            (b"system.posix_acl_access", Fate::Shift),
            (b"system.posix_acl_default", Fate::Shift),
        ] {
            let shown = String::from_utf8_lossy(name);
            assert_eq!(fate(name), expected, "{shown}");
        }
    }
}
