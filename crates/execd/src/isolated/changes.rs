//! What a session changed below its overlays.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

use barchan_wire::execd::file::FileKind;
use barchan_wire::execd::isolated::{Change, ChangeKind};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::Session;
use super::layer::{Entry, Verdict, Visitor, folder, kind, walk};
use crate::fault::{Fault, Kind, text};
use crate::files::expand::escape;
use crate::files::work::{Stop, Weight, run};
use crate::limits::{CHANGES_MS, ENTRIES_MAX};

/// Everything that a session changed.
///
/// # Errors
/// When there is too much, or the kernel refuses.
pub(crate) async fn all(session: &Rc<Session>) -> Result<Vec<Change>, Fault> {
    let (stop, _waiter) = Stop::after_ms(CHANGES_MS);
    let pairs = pairs(session)?;
    let work = move || {
        let mut lister = Lister { found: Vec::new() };
        for (path, upper, lower) in pairs {
            walk(&path, upper, lower, &stop, &mut lister)?;
        }
        Ok(lister.found)
    };
    run(None, Weight::Heavy, work).await
}

/// Path, layer and tree below of every overlay, for a thread.
pub(super) fn pairs(session: &Session) -> Result<Vec<(PathBuf, OwnedFd, OwnedFd)>, Fault> {
    let copies = session.overlays().iter().map(|overlay| {
        let upper = folder(&overlay.upper, c".")?;
        let lower = folder(&overlay.lower, c".")?;
        Ok((overlay.path.clone(), upper, lower))
    });
    copies.collect::<Result<_, Errno>>().map_err(|errno| {
        let message = format!("cannot open the session's overlays: {}", text(errno));
        Fault::new(Kind::Failed, message)
    })
}

/// What is told about an entry, if anything.
fn change(entry: &Entry<'_>) -> Option<Change> {
    let (change, stat) = match entry.verdict {
        Verdict::Added => (ChangeKind::Added, entry.stat),
        Verdict::Changed => (ChangeKind::Changed, entry.stat),
        Verdict::Deleted => (ChangeKind::Deleted, entry.before?),
        Verdict::Same => return None,
    };
    let kind = match kind(stat) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    let has_size = change != ChangeKind::Deleted && kind != FileKind::Directory;
    Some(Change {
        path: escape(entry.path.as_os_str().as_bytes()),
        change,
        kind,
        size: if has_size { stat.st_size as u64 } else { 0 },
    })
}

/// Lists changes.
struct Lister {
    found: Vec<Change>,
}

impl Visitor for Lister {
    fn visit(
        &mut self,
        entry: &Entry<'_>,
        lower: Option<&OwnedFd>,
    ) -> Result<Option<OwnedFd>, Fault> {
        if self.found.len() >= ENTRIES_MAX {
            let message = format!("more than {ENTRIES_MAX} paths changed; commit or delete some");
            return Err(Fault::new(Kind::Failed, message));
        }
        self.found.extend(change(entry));
        let is_folder = |stat: &Stat| kind(stat) == FileType::Directory;
        Ok(match (lower, entry.before) {
            // Gone meanwhile: then everything in it is new.
            (Some(lower), Some(before)) if is_folder(before) => folder(lower, entry.name).ok(),
            _ => None,
        })
    }
}
