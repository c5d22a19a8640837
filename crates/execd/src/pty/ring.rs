//! Pure. The end of a terminal's output, addressed by byte offset.

use std::collections::VecDeque;

/// Output, each byte of one kind.
#[derive(Debug)]
pub(super) struct Ring {
    kept: VecDeque<u8>,
    bytes_max: usize,
    /// Offset of the first byte kept.
    start: u64,
    /// Where a stretch of one kind begins, and the kind.
    kinds: VecDeque<(u64, u8)>,
}

impl Ring {
    /// An empty one.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            bytes_max,
            start: 0,
            kinds: VecDeque::new(),
        }
    }

    /// Offset behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    /// Appends, and drops the oldest bytes beyond the limit.
    pub(super) fn push(&mut self, kind: u8, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.kinds.back().is_none_or(|last| last.1 != kind) {
            self.kinds.push_back((self.end(), kind));
        }
        self.kept.extend(bytes);
        let excess = self.kept.len().saturating_sub(self.bytes_max);
        self.kept.drain(..excess);
        self.start += excess as u64;
        while self.kinds.get(1).is_some_and(|next| next.0 <= self.start) {
            self.kinds.pop_front();
        }
    }

    /// At most `bytes_max` bytes from an offset on, or from the oldest one kept, all of one kind
    /// when `one_kind`: their offset, their kind and they.
    pub(super) fn read(&self, from: u64, bytes_max: usize, one_kind: bool) -> (u64, u8, Vec<u8>) {
        let from = from.clamp(self.start, self.end());
        let next = self.kinds.partition_point(|kind| kind.0 <= from);
        let kind = next.checked_sub(1).and_then(|at| self.kinds.get(at));
        let until = match self.kinds.get(next) {
            Some(next) if one_kind => next.0,
            _ => self.end(),
        };
        let skipped = (from - self.start) as usize;
        let taken = ((until - from) as usize).min(bytes_max);
        let bytes = self.kept.range(skipped..skipped + taken).copied().collect();
        (from, kind.map_or(0, |kind| kind.1), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_found_by_offset_and_kind() {
        let mut ring = Ring::new(8);
        ring.push(1, b"abc");
        ring.push(2, b"de");
        ring.push(2, b"f");
        for (from, bytes_max, one_kind, wanted) in [
            (0, 100, false, (0, 1, b"abcdef".to_vec())),
            (0, 100, true, (0, 1, b"abc".to_vec())),
            (3, 100, true, (3, 2, b"def".to_vec())),
            (4, 1, true, (4, 2, b"e".to_vec())),
            (6, 100, true, (6, 2, vec![])),
            (u64::MAX, 100, true, (6, 2, vec![])),
        ] {
            assert_eq!(ring.read(from, bytes_max, one_kind), wanted, "{from}");
        }
        ring.push(1, b"ghijk");
        assert_eq!(ring.end(), 11);
        assert_eq!(ring.read(0, 100, true), (3, 2, b"def".to_vec()));
        ring.push(1, b"0123456789");
        assert_eq!(ring.read(0, 100, true), (13, 1, b"23456789".to_vec()));
        assert_eq!(ring.kinds.len(), 1);
    }
}
