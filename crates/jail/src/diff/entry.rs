//! Compares what one name is in both views.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fgetxattr, flistxattr, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;

use super::budget::{Budget, Stop};
use super::change::{Part, Seen};
use super::content::{Reader, Text};
use super::spelling::Name;
use crate::capture;

/// Linux keeps neither longer lists nor longer values of attributes.
const ATTRIBUTES_BYTES_MAX: usize = 64 * 1024;

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Waits for nobody, should a pipe be there meanwhile.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What a name is in one view.
pub(super) struct Entry<'a> {
    folder: &'a OwnedFd,
    name: &'a CStr,
    found: Stat,
}

impl<'a> Entry<'a> {
    /// Looks at a name; `None` if there is none.
    pub(super) fn look(folder: Option<&'a OwnedFd>, name: &'a CStr) -> Result<Option<Self>, Errno> {
        let Some(folder) = folder else {
            return Ok(None);
        };
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Self {
                folder,
                name,
                found,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.found.st_mode)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub(super) fn folder(&self) -> Result<OwnedFd, Errno> {
        openat(self.folder, self.name, FOLDER, Mode::empty())
    }

    fn file(&self) -> Result<OwnedFd, Errno> {
        let file = openat(self.folder, self.name, FILE, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            // It was exchanged just now, though nobody should.
            _ => Err(Errno::STALE),
        }
    }

    fn target(&self) -> Result<Name, Errno> {
        let target = readlinkat(self.folder, self.name, Vec::new())?;
        Ok(Name(target.into_bytes()))
    }

    fn owner(&self, base: u32) -> (u32, u32) {
        (
            inner(self.found.st_uid, base),
            inner(self.found.st_gid, base),
        )
    }

    fn mtime_ns(&self) -> i64 {
        let seconds = self.found.st_mtime.saturating_mul(1_000_000_000);
        seconds.saturating_add(self.found.st_mtime_nsec as i64)
    }

    /// What is told of it.
    pub(super) fn seen(&self, base: u32) -> Result<Seen, Errno> {
        let (uid, gid) = self.owner(base);
        let kind = self.kind();
        let target = match kind {
            FileType::Symlink => Some(self.target()?),
            _ => None,
        };
        let size = match kind {
            FileType::RegularFile => self.found.st_size.unsigned_abs(),
            _ => 0,
        };
        Ok(Seen {
            kind: kind.into(),
            mode: self.found.st_mode & 0o7777,
            uid,
            gid,
            size,
            target,
            mtime_ns: self.mtime_ns(),
        })
    }
}

/// In what an entry differs, and what its content says.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) parts: Vec<Part>,
    pub(super) text: Text,
    /// Only the time differs.
    pub(super) is_touched: bool,
}

/// Compares what a name is in both views.
pub(super) fn compare(
    path: &[u8],
    (old, new): (&Entry<'_>, &Entry<'_>),
    reader: &mut Reader,
    budget: &mut Budget<'_>,
) -> Result<Difference, Stop> {
    let mut difference = Difference::default();
    let mut differs = |part, is_other: bool| difference.parts.extend(is_other.then_some(part));
    let kind = old.kind();
    let is_other_kind = kind != new.kind();
    differs(Part::Type, is_other_kind);
    let base = budget.limits.base;
    let (mode, owner) = (
        (old.found.st_mode ^ new.found.st_mode) & 0o7777 != 0,
        old.owner(base) != new.owner(base),
    );
    let mut has_other_attributes = false;
    match kind {
        _ if is_other_kind => {}
        FileType::RegularFile => {
            let (one, other) = (old.file()?, new.file()?);
            if let Some(text) = reader.compare(path, [Some(&one), Some(&other)], budget)? {
                differs(Part::Content, true);
                difference.text = text;
            }
            has_other_attributes = has_others(&one, &other, budget)?;
        }
        FileType::Directory => {
            has_other_attributes = has_others(&old.folder()?, &new.folder()?, budget)?;
        }
        FileType::Symlink => differs(Part::Target, old.target()? != new.target()?),
        FileType::CharacterDevice | FileType::BlockDevice => {
            differs(Part::Content, old.found.st_rdev != new.found.st_rdev);
        }
        _ => {}
    }
    for (part, is_other) in [
        (Part::Mode, mode),
        (Part::Owner, owner),
        (Part::Xattr, has_other_attributes),
    ] {
        difference.parts.extend(is_other.then_some(part));
    }
    difference.is_touched = difference.parts.is_empty() && old.mtime_ns() != new.mtime_ns();
    Ok(difference)
}

/// What the content says of what only one view has.
pub(super) fn content(
    path: &[u8],
    old: Option<&Entry<'_>>,
    new: Option<&Entry<'_>>,
    reader: &mut Reader,
    budget: &mut Budget<'_>,
) -> Result<Text, Stop> {
    let open = |entry: Option<&Entry<'_>>| {
        let file = entry.filter(|entry| entry.kind() == FileType::RegularFile);
        file.map(Entry::file).transpose()
    };
    let files = [open(old)?, open(new)?];
    let files = [files[0].as_ref(), files[1].as_ref()];
    match files {
        [None, None] => Ok(Text::default()),
        files => Ok(reader.compare(path, files, budget)?.unwrap_or_default()),
    }
}

/// The id inside of somebody outside.
fn inner(id: u32, base: u32) -> u32 {
    match base {
        0 => id,
        base => capture::inner(id, base),
    }
}

/// Whether two files have other attributes. One value of each is held at a time.
fn has_others(old: &OwnedFd, new: &OwnedFd, budget: &mut Budget<'_>) -> Result<bool, Stop> {
    let names = attributes(old)?;
    if names != attributes(new)? {
        return Ok(true);
    }
    for name in &names {
        let values = (value(old, name)?, value(new, name)?);
        let bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        budget.read(bytes(&values.0) + bytes(&values.1))?;
        if values.0 != values.1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names of those that mean something in a sandbox, in order.
fn attributes(file: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut list = Vec::with_capacity(ATTRIBUTES_BYTES_MAX);
    match flistxattr(file, spare_capacity(&mut list)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno),
    }
    let names = list.split_inclusive(|&byte| byte == 0);
    let names =
        names.filter(|name| name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_"));
    let names = names.filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    let mut names: Vec<CString> = names.map(CStr::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}

fn value(file: &OwnedFd, name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = Vec::with_capacity(ATTRIBUTES_BYTES_MAX);
    match fgetxattr(file, name, spare_capacity(&mut value)) {
        Ok(_) => Ok(Some(value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}
