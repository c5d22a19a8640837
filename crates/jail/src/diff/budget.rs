//! How much was looked at, and how much may be.

use std::io::{self, Write};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::change::{Change, Kind};
use super::{Cut, Limits, Summary};

/// Why a comparison ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is more than there may be.
    Cut(Cut),
    /// The kernel refused.
    Kernel(Errno),
    /// Whoever is told refused.
    Sink(io::Error),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

#[derive(Debug)]
pub(super) struct Budget<'a> {
    pub(super) limits: &'a Limits,
    pub(super) summary: Summary,
    began: Duration,
    diffs_bytes: usize,
}

impl<'a> Budget<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            summary: Summary::default(),
            began: now(),
            diffs_bytes: 0,
        }
    }

    /// Counts a name.
    pub(super) fn look(&mut self) -> Result<(), Stop> {
        if self.summary.entries >= self.limits.entries_max {
            return Err(Stop::Cut(Cut::Entries));
        }
        self.summary.entries += 1;
        self.check_time()
    }

    pub(super) fn check_time(&self) -> Result<(), Stop> {
        match self.left().is_zero() {
            true => Err(Stop::Cut(Cut::Time)),
            false => Ok(()),
        }
    }

    /// The time that is left.
    fn left(&self) -> Duration {
        let all = Duration::from_millis(self.limits.time_ms_max);
        all.saturating_sub(now().saturating_sub(self.began))
    }

    /// The time for the lines of one file.
    pub(super) fn text_time(&self) -> Duration {
        Duration::from_millis(self.limits.text_ms_max).min(self.left())
    }

    /// Counts content that is about to be read.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), Stop> {
        let all = self.summary.read_bytes.saturating_add(bytes as u64);
        if all > self.limits.read_bytes_max {
            return Err(Stop::Cut(Cut::Read));
        }
        self.summary.read_bytes = all;
        self.check_time()
    }

    /// How long all further diffs may be together, in bytes.
    pub(super) fn diffs_left(&self) -> usize {
        self.limits.diffs_bytes_max.saturating_sub(self.diffs_bytes)
    }

    /// Counts what is about to be told.
    pub(super) fn tell(&mut self, change: &Change) -> Result<(), Stop> {
        let mut counter = Counter(1);
        serde_json::to_writer(&mut counter, change).map_err(|error| Stop::Sink(error.into()))?;
        let all = self.summary.output_bytes.saturating_add(counter.0);
        if all > self.limits.output_bytes_max {
            return Err(Stop::Cut(Cut::Output));
        }
        let summary = &mut self.summary;
        summary.output_bytes = all;
        summary.texts_cut += u64::from(change.diff_cut.is_some());
        *match change.change {
            Kind::Added => &mut summary.added,
            Kind::Changed => &mut summary.changed,
            Kind::Deleted => &mut summary.deleted,
            Kind::Touched => &mut summary.touched,
        } += 1;
        self.diffs_bytes += change.diff.as_ref().map_or(0, String::len);
        Ok(())
    }
}

/// The time that this process was at work: whoever reads slowly takes nobody's.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Counts bytes.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
