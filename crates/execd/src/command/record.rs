//! What a command has printed: the end of it, up to a limit, in the one order in which it was
//! read, with the stream that each byte came from.
//!
//! Offsets count every byte that was ever printed, so a caller that hands back the offset it got
//! sees each byte once, whether or not the front has been dropped meanwhile.

use std::collections::VecDeque;

use super::spill::Spill;
use crate::limits::{RECORD_HEAP_BYTES_MAX, RECORD_TURNS_MAX};

/// Where a byte was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The bit of a turn that stands for standard error.
const STDERR: u64 = 1 << 63;

/// Output of one command.
#[derive(Debug, Default)]
pub(crate) struct Record {
    store: Store,
    /// Where the output turns from one stream to the other: offsets, marked with [`STDERR`].
    turns: VecDeque<u64>,
    start: u64,
    end: u64,
}

#[derive(Debug)]
enum Store {
    Heap(VecDeque<u8>),
    File(Spill),
}

impl Default for Store {
    fn default() -> Self {
        Self::Heap(VecDeque::new())
    }
}

/// A stretch of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which.
    pub(crate) source: Source,
    /// Offset of its first byte.
    pub(crate) at: u64,
    /// How many bytes.
    pub(crate) bytes: usize,
}

impl Record {
    /// Offset of the first byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of memory that it takes.
    pub(crate) fn weight(&self) -> usize {
        (self.end - self.start) as usize + self.turns.len() * size_of::<u64>()
    }

    /// Appends, and drops the oldest bytes beyond `bytes_max`.
    pub(crate) fn push(&mut self, source: Source, bytes: &[u8], bytes_max: usize) {
        if bytes.is_empty() {
            return;
        }
        let mark = if source == Source::Stderr { STDERR } else { 0 };
        if self.turns.back().is_none_or(|last| last & STDERR != mark) {
            self.turns.push_back(self.end | mark);
        }
        self.end += bytes.len() as u64;
        if self.store.push(self.start, self.end, bytes).is_err() {
            // Nothing of it can be kept where there is no memory; who reads is told of the gap.
            self.store = Store::default();
            self.start = self.end;
            self.turns.clear();
            return;
        }
        self.shorten(bytes_max);
        if self.turns.len() > RECORD_TURNS_MAX {
            let second = self.turns.get(1).map_or(self.end, |turn| turn & !STDERR);
            self.drop_front(second);
        }
    }

    /// Drops the oldest bytes beyond `bytes_max`.
    pub(crate) fn shorten(&mut self, bytes_max: usize) {
        let start = self.end.saturating_sub(bytes_max as u64);
        if start > self.start {
            self.drop_front(start);
        }
    }

    fn drop_front(&mut self, start: u64) {
        self.store.drop_front((start - self.start) as usize, start);
        self.start = start;
        while self
            .turns
            .get(1)
            .is_some_and(|turn| turn & !STDERR <= start)
        {
            self.turns.pop_front();
        }
        if start == self.end {
            self.store = Store::default();
            self.turns = VecDeque::new();
        }
    }

    /// Reads the next stretch of one stream from `at`, or from the first byte that is kept if that
    /// is later, as far as the buffer holds it. `None`: there is nothing behind `at`.
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> Option<Piece> {
        let at = at.max(self.start);
        if at >= self.end {
            return None;
        }
        let behind = self.turns.partition_point(|turn| turn & !STDERR <= at);
        let turn = self.turns.get(behind.checked_sub(1)?)?;
        let stretch_end = self
            .turns
            .get(behind)
            .map_or(self.end, |turn| turn & !STDERR);
        let source = match turn & STDERR {
            0 => Source::Stdout,
            _ => Source::Stderr,
        };
        let bytes = ((stretch_end - at) as usize).min(buffer.len());
        let bytes = self.bytes(at, buffer.get_mut(..bytes)?);
        Some(Piece { source, at, bytes })
    }

    /// Reads both streams from `at`, which must be kept, as far as the buffer holds them.
    pub(crate) fn bytes(&self, at: u64, buffer: &mut [u8]) -> usize {
        let wanted = (self.end.saturating_sub(at) as usize).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..wanted) else {
            return 0;
        };
        match &self.store {
            Store::File(file) => file.read(at, buffer),
            Store::Heap(kept) => copy(kept, (at - self.start) as usize, buffer),
        }
    }
}

impl Store {
    /// Appends the bytes that end at `end`.
    fn push(&mut self, start: u64, end: u64, bytes: &[u8]) -> std::io::Result<()> {
        if let Self::Heap(kept) = self {
            if kept.len() + bytes.len() <= RECORD_HEAP_BYTES_MAX {
                kept.extend(bytes);
                return Ok(());
            }
            let file = Spill::new(start)?;
            let (front, back) = kept.as_slices();
            file.write(start, front)?;
            file.write(start + front.len() as u64, back)?;
            *self = Self::File(file);
        }
        match self {
            Self::File(file) => file.write(end - bytes.len() as u64, bytes),
            Self::Heap(_) => Ok(()),
        }
    }

    fn drop_front(&mut self, bytes: usize, start: u64) {
        match self {
            Self::Heap(kept) => drop(kept.drain(..bytes.min(kept.len()))),
            Self::File(file) => file.drop_front(start),
        }
    }
}

fn copy(kept: &VecDeque<u8>, skip: usize, buffer: &mut [u8]) -> usize {
    let (front, back) = kept.as_slices();
    let first = front.get(skip..).unwrap_or_default();
    let second = back.get(skip.saturating_sub(front.len())..);
    let mut copied = 0;
    for part in [first, second.unwrap_or_default()] {
        let bytes = part.len().min(buffer.len() - copied);
        let target = buffer.get_mut(copied..copied + bytes).unwrap_or_default();
        target.copy_from_slice(part.get(..bytes).unwrap_or_default());
        copied += bytes;
    }
    copied
}

#[cfg(test)]
mod tests;
