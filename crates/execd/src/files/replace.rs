//! Replaces text in files. A request is carried out on all its files or on none: every new content
//! is written beside its file before the first one is put in place.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::download::{Content, block, open_file};
use super::expand::escape;
use super::permission::Rights;
use super::stage::Staged;
use crate::fault::{Fault, Kind};
use crate::limits::REPLACE_BYTES_MAX;

/// One replacement.
#[derive(Debug)]
pub(crate) struct Order {
    /// The file.
    pub(crate) path: PathBuf,
    /// What to look for, byte by byte; not empty.
    pub(crate) old: Vec<u8>,
    /// What to put there.
    pub(crate) new: Vec<u8>,
}

/// Replaces every occurrence in every file; how many there were, in order.
///
/// # Errors
/// When any of the files cannot be changed; none is, then.
pub(crate) fn all(orders: &[Order]) -> Result<Vec<u64>, Fault> {
    let mut staged = Vec::new();
    let mut counts = Vec::new();
    for order in orders {
        let before = content(&order.path)?;
        let (after, count) = replace(&before, &order.old, &order.new)?;
        counts.push(count);
        if count > 0 {
            let mut file = Staged::new(&order.path, Rights::default())?;
            file.write(&after)?;
            staged.push(file);
        }
    }
    staged.into_iter().try_for_each(Staged::commit)?;
    Ok(counts)
}

fn content(path: &Path) -> Result<Vec<u8>, Fault> {
    let (mut all, mut file) = match open_file(path)?.content {
        Content::Whole(bytes) => return Ok(bytes.into()),
        Content::Sized(file, _) => (Vec::new(), file),
        Content::Endless(head, file) => (head.into(), file),
    };
    loop {
        let more = block(&mut file, u64::MAX)?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend_from_slice(&more);
        if all.len() as u64 > REPLACE_BYTES_MAX {
            return Err(too_large(&escape(path.as_os_str().as_bytes())));
        }
    }
}

fn replace(before: &[u8], old: &[u8], new: &[u8]) -> Result<(Vec<u8>, u64), Fault> {
    let mut after = Vec::with_capacity(before.len());
    let (mut rest, mut count) = (0, 0);
    for at in memmem::find_iter(before, old) {
        after.extend_from_slice(before.get(rest..at).unwrap_or_default());
        after.extend_from_slice(new);
        if after.len() as u64 > REPLACE_BYTES_MAX {
            return Err(too_large("the result"));
        }
        rest = at + old.len();
        count += 1;
    }
    after.extend_from_slice(before.get(rest..).unwrap_or_default());
    Ok((after, count))
}

fn too_large(what: &str) -> Fault {
    let mib = REPLACE_BYTES_MAX / (1024 * 1024);
    Fault::new(
        Kind::TooLarge,
        format!("{what} is larger than {mib} MiB, too large to replace in"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_is_exact() {
        for (before, old, new, after, count) in [
            ("a\nb", "b", "c", "a\nc", 1),
            ("x\r\ny\r\n", "y", "z", "x\r\nz\r\n", 1),
            ("x\r\ny\r\n", "x\ny", "z", "x\r\ny\r\n", 0),
            ("aaaa", "aa", "b", "bb", 2),
            ("a", "a", "", "", 1),
            ("", "a", "b", "", 0),
        ] {
            let done = replace(before.as_bytes(), old.as_bytes(), new.as_bytes()).unwrap();
            assert_eq!(
                done,
                (after.as_bytes().to_vec(), count),
                "{before:?} {old:?}"
            );
        }
    }

    #[test]
    fn one_bad_file_stops_all() {
        let scratch = tempfile::tempdir().unwrap();
        let good = scratch.path().join("good");
        std::fs::write(&good, "old").unwrap();
        let order = |name: &str| Order {
            path: scratch.path().join(name),
            old: b"old".to_vec(),
            new: b"new".to_vec(),
        };
        assert_eq!(
            all(&[order("good"), order("none")]).unwrap_err().kind,
            Kind::NoFile
        );
        assert_eq!(std::fs::read(&good).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
        assert_eq!(all(&[order("good")]), Ok(vec![1]));
        assert_eq!(std::fs::read(&good).unwrap(), b"new");
    }
}
