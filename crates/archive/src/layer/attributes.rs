//! Extended attributes of what is packed and unpacked.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr, fstatvfs};
use rustix::io::Errno;

use super::marks::{self, Fate};

/// Linux keeps neither longer lists nor longer values.
const BYTES_MAX: usize = 64 * 1024;
/// With so many bytes free a disk is not full for the attributes of one file.
const ROOM_BYTES: u64 = 1 << 20;
/// Lists of who may access a file name users by their numbers.
pub(super) const LISTS: &[u8] = b"system.posix_acl_";
/// The list that whatever is made in a directory begins with.
const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

/// Names and values.
pub(super) type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// What the attributes of a file or directory say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Those that are kept, by name.
    pub(super) kept: Attributes,
    /// Nothing below shows.
    pub(super) is_opaque: bool,
    /// It stands for a name that is gone.
    pub(super) is_whiteout: bool,
    /// It is only a part of a file.
    pub(super) is_part: bool,
}

/// Reads those of a file that lies in a layer, or is seen through an overlay.
pub(super) fn read(file: impl AsFd, is_seen: bool) -> Result<Told, Errno> {
    let outward = match is_seen {
        true => marks::outward_seen,
        false => marks::outward,
    };
    let mut told = Told::default();
    let mut list = Vec::with_capacity(BYTES_MAX);
    match flistxattr(&file, spare_capacity(&mut list)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno),
    }
    for name in list.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue;
        };
        match outward(name.to_bytes()) {
            Fate::Keep(shown) => told.kept.push((shown, value(&file, name)?)),
            // "x" says only that files may stand for names that are gone.
            Fate::Opaque => told.is_opaque |= value(&file, name)? == b"y",
            Fate::Whiteout => told.is_whiteout = true,
            Fate::Part => told.is_part = true,
            Fate::Leave => {}
        }
    }
    told.kept.sort();
    Ok(told)
}

fn value(file: impl AsFd, name: &CStr) -> Result<Vec<u8>, Errno> {
    let mut value = Vec::with_capacity(BYTES_MAX);
    fgetxattr(file, name, spare_capacity(&mut value))?;
    Ok(value)
}

/// Gives an open file the attributes of an archive's entry. `NOSPC` means the disk, and `TOOBIG`
/// that one file cannot have so many.
pub(super) fn write(file: impl AsFd, attributes: &Attributes) -> Result<(), Errno> {
    for (name, value) in attributes {
        let Some(name) = marks::inward(name).and_then(|name| CString::new(name).ok()) else {
            continue;
        };
        match fsetxattr(&file, name.as_c_str(), value, XattrFlags::empty()) {
            // ext4 says the same of a disk that is full and of a file that has enough of them.
            Err(Errno::NOSPC) if has_room(&file) => return Err(Errno::TOOBIG),
            given => given?,
        }
    }
    Ok(())
}

/// Whether the file system of a file has blocks for more than its attributes.
fn has_room(file: impl AsFd) -> bool {
    let found = fstatvfs(file);
    found.is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) > ROOM_BYTES)
}

/// Takes away what an entry before had under the same name.
pub(super) fn forget(file: impl AsFd) -> Result<(), Errno> {
    let mut list = Vec::with_capacity(BYTES_MAX);
    match flistxattr(&file, spare_capacity(&mut list)) {
        Ok(_) => {}
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    for name in list.split_inclusive(|&byte| byte == 0) {
        if let Ok(name) = CStr::from_bytes_with_nul(name)
            && matches!(marks::outward(name.to_bytes()), Fate::Keep(_))
        {
            rustix::fs::fremovexattr(&file, name)?;
        }
    }
    Ok(())
}

/// Those of a directory that are given last, as whatever is made in it has them too.
pub(super) fn split(attributes: Attributes) -> (Attributes, Attributes) {
    let is_last = |(name, _): &(Vec<u8>, Vec<u8>)| name == DEFAULT_LIST;
    let (last, first) = attributes.into_iter().partition(is_last);
    (first, last)
}
