//! Where threads put what they find, and where it comes into order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::one_file::Hits;
use super::{Found, GrepMode, Skipped, Truncation, lock};
use crate::files::work::Stop;
use crate::limits::{FOUND_BYTES_MAX, SKIPPED_MAX};

/// What was found so far.
#[derive(Debug)]
pub(super) struct Board {
    mode: GrepMode,
    count_max: u64,
    full: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The number of the batch that comes next.
    due: u64,
    /// Batches that were done before others which come first.
    early: BTreeMap<u64, Vec<Hits>>,
    found: Found,
    taken: u64,
    bytes: usize,
    truncated: Option<Truncation>,
}

/// Whether to stop: because time is over, or because enough was found.
#[derive(Debug)]
pub(super) struct Stopping<'a> {
    stop: &'a Stop,
    full: &'a AtomicBool,
}

impl Stopping<'_> {
    pub(super) fn now(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.stop.now()
    }
}

impl Board {
    pub(super) fn new(mode: GrepMode, count_max: u64) -> Self {
        Self {
            mode,
            count_max,
            full: AtomicBool::new(false),
            inner: Mutex::default(),
        }
    }

    pub(super) fn stopping<'a>(&'a self, stop: &'a Stop) -> Stopping<'a> {
        let full = &self.full;
        Stopping { stop, full }
    }

    /// Whether more would be thrown away.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Puts down what a batch held.
    pub(super) fn put(&self, number: u64, hits: Vec<Hits>) {
        let mut inner = lock(&self.inner);
        inner.bytes += hits.iter().map(|hits| hits.bytes).sum::<usize>();
        inner.early.insert(number, hits);
        loop {
            let due = inner.due;
            let Some(batch) = inner.early.remove(&due) else {
                break;
            };
            inner.due += 1;
            for hits in batch {
                inner.take(hits, self.mode, self.count_max);
            }
        }
        if inner.bytes > FOUND_BYTES_MAX {
            inner.truncated = inner.truncated.or(Some(Truncation::Size));
        }
        if inner.truncated.is_some() {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Everything, with the gaps that the walk left and whether time was over.
    pub(super) fn finish(
        self,
        (gap, mut skipped): (Option<Truncation>, Vec<Skipped>),
        late: bool,
    ) -> Found {
        let inner = self.inner.into_inner();
        let inner = inner.unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut found = inner.found;
        let late = late.then_some(Truncation::Time);
        let unreadable = !found.skipped.is_empty();
        found.truncated = inner
            .truncated
            .or(late)
            .or(gap)
            .or(unreadable.then_some(Truncation::Unreadable));
        skipped.append(&mut found.skipped);
        skipped.truncate(SKIPPED_MAX);
        found.skipped = skipped;
        found
    }
}

impl Inner {
    /// Takes what a file held, as far as there is room.
    fn take(&mut self, hits: Hits, mode: GrepMode, count_max: u64) {
        if let Some(skipped) = hits.skipped
            && self.found.skipped.len() < SKIPPED_MAX
        {
            self.found.skipped.push(skipped);
        }
        if hits.count.count == 0 || self.truncated == Some(Truncation::Count) {
            return;
        }
        let room = usize::try_from(count_max - self.taken).unwrap_or(usize::MAX);
        let (found, more) = match mode {
            GrepMode::Matches => (hits.lines.len(), hits.lines.len() > room),
            GrepMode::Files | GrepMode::Counts => (1, room == 0),
        };
        if more {
            self.truncated = Some(Truncation::Count);
        }
        self.taken += found.min(room) as u64;
        match mode {
            GrepMode::Matches => self.found.matches.extend(hits.lines.into_iter().take(room)),
            GrepMode::Files if room > 0 => self.found.files.push(hits.count.path),
            GrepMode::Counts if room > 0 => self.found.counts.push(hits.count),
            GrepMode::Files | GrepMode::Counts => {}
        }
    }
}
