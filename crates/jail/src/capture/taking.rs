//! How layers come to lie somewhere else: copied of a sandbox that may run meanwhile, and merged.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::copy::Copier;
use super::pass::{Pass, Tally};
use super::process::Given;
use super::stand::Stand;
use super::{Captured, Commit, Copying, LAYER, Order, UNFINISHED};
use crate::merge::{self, Limits, Merged, Source};
use crate::{disk, tree};

/// Most walks over a layer that still changes.
const LIVE_PASSES_MAX: u32 = 4;
/// After a walk that took no longer, in nanoseconds, another one would find as much.
const SHORT_PASS_NS: i64 = 50_000_000;
/// What a sandbox wrote since a layer was sealed, while it is merged with that.
const TOP: &str = "top";
/// The folder with one name for each file of several.
const LINKS: &str = "links";

pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(super) fn folder(above: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(&above, name, Mode::RWXU)?;
    Ok(rustix::fs::openat(&above, name, FOLDER, Mode::empty())?)
}

/// Takes a snapshot.
pub(super) fn take(
    order: &Order,
    layer: &OwnedFd,
    given: &Given<'_>,
    channel: &OwnedFd,
) -> io::Result<Captured> {
    let unfinished = format!("{}{UNFINISHED}", order.snapshot);
    let place = folder(given.shelf, &unfinished)?;
    let mut captured = order.copying.copy(layer, &place, given.events, channel)?;
    if !given.stack.is_empty() {
        let merged = merge_below(order, &place, given.stack, captured)?;
        captured.bytes += merged.bytes;
        captured.entries = merged.entries;
    }
    finish(given.shelf, &place, &order.snapshot)?;
    Ok(captured)
}

/// Takes a snapshot of sealed layers. None are how a sandbox was made that had written nothing.
pub(super) fn commit(order: &Commit, given: &Given<'_>) -> io::Result<Captured> {
    let place = folder(given.shelf, &format!("{}{UNFINISHED}", order.snapshot))?;
    let into = folder(&place, LAYER)?;
    let limits = Limits {
        entries_max: order.entries_max,
        bytes_max: order.bytes_max,
    };
    let merged = if given.stack.is_empty() {
        rustix::fs::fchmod(&into, Mode::from_raw_mode(0o755))?;
        Merged::default()
    } else {
        merge::merge(given.stack, into.as_fd(), 0, &limits)?
    };
    finish(given.shelf, &place, &order.snapshot)?;
    Ok(captured(merged))
}

/// Gives a snapshot its name once all of it is on the disk.
fn finish(shelf: BorrowedFd<'_>, place: &OwnedFd, snapshot: &str) -> io::Result<()> {
    rustix::fs::syncfs(place)?;
    let unfinished = format!("{snapshot}{UNFINISHED}");
    rustix::fs::renameat(shelf, unfinished, shelf, snapshot)?;
    Ok(rustix::fs::fsync(shelf)?)
}

fn captured(merged: Merged) -> Captured {
    Captured {
        bytes: merged.bytes,
        entries: merged.entries,
        still_us: 0,
    }
}

/// Merges the sealed layers of a sandbox below the copy of what it wrote since: a snapshot is one
/// layer.
fn merge_below(
    order: &Order,
    place: &OwnedFd,
    stack: &[Source],
    copied: Captured,
) -> io::Result<Merged> {
    rustix::fs::renameat(place, LAYER, place, TOP)?;
    let top = rustix::fs::openat(place, TOP, FOLDER, Mode::empty())?;
    let mut all = vec![Source {
        folder: top,
        base: order.copying.ids.to,
    }];
    for source in stack {
        all.push(Source {
            folder: source.folder.try_clone()?,
            base: source.base,
        });
    }
    let limits = Limits {
        entries_max: order.copying.entries_max,
        bytes_max: order.copying.bytes_max.saturating_sub(copied.bytes),
    };
    let into = folder(place, LAYER)?;
    let merged = merge::merge(&all, into.as_fd(), order.copying.ids.to, &limits)?;
    tree::remove(place, Path::new(TOP))?;
    Ok(merged)
}

/// Merges layers of a disk into one beside them.
pub(super) fn merge_beside(number: u32, base: u32, given: &Given<'_>) -> io::Result<Captured> {
    let disk = given.shelf.try_clone_to_owned()?;
    disk::clear_number(&disk, number)?;
    let name = disk::unfinished(number);
    let place = folder(&disk, &name)?;
    let into = folder(&place, LAYER)?;
    let limits = Limits {
        entries_max: u64::MAX,
        bytes_max: u64::MAX,
    };
    let merged = merge::merge(given.stack, into.as_fd(), base, &limits)?;
    rustix::fs::renameat(&place, LAYER, &disk, disk::upper(number))?;
    rustix::fs::unlinkat(&disk, name, AtFlags::REMOVEDIR)?;
    Ok(captured(merged))
}

impl Copying {
    /// Copies a layer to a new folder [`LAYER`] of `place` while its sandbox runs, and stops that
    /// for the last of it.
    pub(crate) fn copy(
        &self,
        layer: &OwnedFd,
        place: &OwnedFd,
        events: Option<BorrowedFd<'_>>,
        channel: &OwnedFd,
    ) -> io::Result<Captured> {
        let into = folder(place, LAYER)?;
        let (mut number, mut before) = (0, None);
        while self.is_timed && number < LIVE_PASSES_MAX {
            let pass = Pass::begin(number, None, before);
            let began = pass.began();
            // Whatever is written through memory from now on is stamped when it is.
            rustix::fs::syncfs(layer)?;
            self.walk(layer, place, &into, pass)?;
            (number, before) = (number + 1, Some(began));
            if began.elapsed_ns() < SHORT_PASS_NS {
                break;
            }
        }
        let stand = Stand::order(channel, events)?;
        let last = Pass::begin(number, Some(self.still_ms), before);
        let mut captured = self.walk(layer, place, &into, last)?;
        captured.still_us = stand.over(channel)?;
        Ok(captured)
    }

    /// The same in one go, of a sandbox that stands still already.
    pub(crate) fn copy_still(&self, layer: &OwnedFd, place: &OwnedFd) -> io::Result<Captured> {
        let into = folder(place, LAYER)?;
        let only = Pass::begin(0, Some(self.still_ms), None);
        self.walk(layer, place, &into, only)
    }

    fn walk(
        &self,
        layer: &OwnedFd,
        place: &OwnedFd,
        into: &OwnedFd,
        pass: Pass,
    ) -> io::Result<Captured> {
        let links = folder(place, LINKS)?;
        let mut copier = Copier::new(self.ids, pass, Tally::new(self), &links);
        copier.walk(layer, into)?;
        // A name there keeps a copy on the disk that the next walk replaces.
        tree::remove(place, Path::new(LINKS))?;
        Ok(copier.tally.seen)
    }
}

#[cfg(test)]
mod tests;
