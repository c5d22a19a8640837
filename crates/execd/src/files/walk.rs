//! Goes through directories, for listings and searches. Links are shown, never entered. Whatever
//! vanishes or may not be read on the way is passed over; only the root itself must be readable.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_wire::execd::file::FileInfo;
use rustix::fs::{FileType, statfs};

use super::expand::escape;
use super::glob::Glob;
use super::info::{Teller, file_type, look};
use super::work::Stop;
use crate::fault::{Fault, Kind, errno};
use crate::limits::{ENTRIES_MAX, WALK_MS};

/// One directory being gone through: what is left of it, in reverse order.
struct Level {
    names: Vec<(OsString, bool)>,
    device: (u32, u32),
}

/// Everything below `root`, down to `depth` levels, each directory followed by what is in it.
///
/// # Errors
/// When the root is no directory, or there is too much.
pub(crate) fn list(
    root: &Path,
    depth: u64,
    teller: &Teller,
    stop: &Stop,
) -> Result<Vec<FileInfo>, Fault> {
    let found = look(root)?;
    if file_type(&found) != FileType::Directory {
        let path = escape(root.as_os_str().as_bytes());
        let what = if file_type(&found) == FileType::Symlink {
            "a link"
        } else {
            "no directory"
        };
        return Err(Fault::new(
            Kind::BadFile,
            format!("cannot list {path}: it is {what}"),
        ));
    }
    let mut all = Vec::new();
    if depth == 0 {
        return Ok(all);
    }
    walk(root, depth, stop, |path, _| {
        if let Ok(found) = look(path) {
            all.push(teller.describe(path, &found));
        }
        full(all.len(), root)
    })?;
    Ok(all)
}

/// Every regular file below `root` whose name, or path below it, matches.
///
/// # Errors
/// When the root does not exist, or there is too much.
pub(crate) fn search(
    root: &Path,
    glob: &Glob,
    teller: &Teller,
    stop: &Stop,
) -> Result<Vec<FileInfo>, Fault> {
    let mut all = Vec::new();
    if file_type(&look(root)?) == FileType::RegularFile {
        let name = root.file_name().unwrap_or_default();
        if glob.matches(name.as_bytes()) {
            all.push(teller.describe(root, &look(root)?));
        }
        return Ok(all);
    }
    walk(root, u64::MAX, stop, |path, relative| {
        if glob.matches(relative.as_os_str().as_bytes())
            && let Ok(found) = look(path)
            && file_type(&found) == FileType::RegularFile
        {
            all.push(teller.describe(path, &found));
        }
        full(all.len(), root)
    })?;
    Ok(all)
}

fn full(entries: usize, root: &Path) -> Result<(), Fault> {
    if entries <= ENTRIES_MAX {
        return Ok(());
    }
    let path = escape(root.as_os_str().as_bytes());
    let message = format!("more than {ENTRIES_MAX} entries below {path}; ask for less at once");
    Err(Fault::new(Kind::Failed, message))
}

/// Visits everything below `root`, with its path and its path below the root.
fn walk(
    root: &Path,
    depth: u64,
    stop: &Stop,
    mut visit: impl FnMut(&Path, &Path) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let refused = |error: &std::io::Error| {
        Fault::of_path(errno(error), "read", escape(root.as_os_str().as_bytes()))
    };
    let mut levels = vec![open(root).map_err(|error| refused(&error))?];
    let mut path = root.to_owned();
    let mut relative = PathBuf::new();
    while let Some(level) = levels.last_mut() {
        let device = level.device;
        let Some((name, is_directory)) = level.names.pop() else {
            levels.pop();
            path.pop();
            relative.pop();
            continue;
        };
        if stop.now() {
            let root = escape(root.as_os_str().as_bytes());
            let seconds = WALK_MS / 1000;
            let message = format!("{root} takes longer than {seconds} s; ask for less at once");
            return Err(Fault::new(Kind::Failed, message));
        }
        path.push(&name);
        relative.push(&name);
        visit(&path, &relative)?;
        if is_directory
            && (levels.len() as u64) < depth
            && let Ok(below) = open(&path)
            && (below.device == device || !is_of_the_kernel(&path))
        {
            levels.push(below);
        } else {
            path.pop();
            relative.pop();
        }
    }
    Ok(())
}

/// The entries of a directory, the last first.
fn open(path: &Path) -> std::io::Result<Level> {
    let device = look(path).map(|found| (found.stx_dev_major, found.stx_dev_minor));
    let entries = std::fs::read_dir(path)?
        .filter_map(Result::ok)
        .map(|entry| {
            let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
            (entry.file_name(), is_directory)
        });
    let mut names: Vec<_> = entries.collect();
    names.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    Ok(Level {
        names,
        device: device.unwrap_or_default(),
    })
}

/// Whether a mount shows the kernel's state rather than files: a walk over everything is not meant
/// to go through each process's.
fn is_of_the_kernel(path: &Path) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYS: i64 = 0x6265_6572;
    statfs(path).is_ok_and(|found| matches!(found.f_type, PROC | SYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_with_its_time_or_its_caller() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("file"), "").unwrap();
        let glob = Glob::new(b"**").unwrap();
        let search = |stop: &Stop| search(scratch.path(), &glob, &Teller::default(), stop);
        let (stop, waiter) = Stop::after_ms(60_000);
        assert_eq!(search(&stop).unwrap().len(), 1);
        drop(waiter);
        assert_eq!(search(&stop).unwrap_err().kind, Kind::Failed);
        let (stop, _waiter) = Stop::after_ms(0);
        while !stop.now() {
            std::thread::yield_now();
        }
        assert_eq!(search(&stop).unwrap_err().kind, Kind::Failed);
    }
}
