//! Lists a directory.

use std::path::Path;

use barchan_wire::execd::file::FileKind;
use barchan_wire::execd::fs::Entry;
use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::execd::moment;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, open, statat};
use rustix::io::Errno;

use super::refusal::{of_path, refused};
use super::resolve::shown;
use crate::files::expand::escape;
use crate::limits::ENTRIES_MAX;

/// What is in a directory, by name; sizes and times only if wanted, because they cost a call each.
///
/// # Errors
/// When it is no directory, holds too much, or the kernel refuses.
pub(crate) fn list(path: &Path, details: bool) -> Result<Vec<Entry>, Refusal> {
    let refusal = |errno| of_path(errno, "list", shown(path));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).map_err(|errno| match errno {
        // The last component, or one above it.
        Errno::NOTDIR if path.symlink_metadata().is_err() => refusal(Errno::NOENT),
        errno => refusal(errno),
    })?;
    let base = match shown(path) {
        root if root == "/" => String::new(),
        base => base,
    };
    let mut all = Vec::new();
    for entry in Dir::read_from(&directory).map_err(refusal)? {
        let entry = entry.map_err(refusal)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if all.len() == ENTRIES_MAX {
            let message = format!(
                "{} has more than {ENTRIES_MAX} entries; look for some of them by glob",
                shown(path)
            );
            return Err(refused(Code::TooLarge, message));
        }
        let mut kind = entry.file_type();
        let look = details || kind == FileType::Unknown;
        let found = look.then(|| statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW));
        let found: Option<Stat> = found.and_then(Result::ok);
        if let Some(found) = &found {
            kind = FileType::from_raw_mode(found.st_mode);
        }
        let found = found.filter(|_| details);
        all.push(Entry {
            path: format!("{base}/{}", escape(name.to_bytes())),
            kind: kind_of(kind),
            size: found.map(|it| it.st_size.unsigned_abs()),
            modified_at: found.map(|it| moment::from_unix(it.st_mtime, it.st_mtime_nsec as u32)),
        });
    }
    all.sort_unstable_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
    Ok(all)
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}
