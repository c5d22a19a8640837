//! Pure. Cuts some lines out of a file that arrives in blocks.

use std::ops::Range;

use memchr::memchr_iter;

/// The lines still to be passed over, and those still to be taken.
#[derive(Debug)]
pub(crate) struct LineWindow {
    skip: u64,
    take: Option<u64>,
}

impl LineWindow {
    /// `limit` lines (all, if `None`) from line `first` on, counted from 1.
    pub(crate) fn new(first: u64, limit: Option<u64>) -> Self {
        Self {
            skip: first.saturating_sub(1),
            take: limit,
        }
    }

    /// Nothing of what follows belongs to it.
    pub(crate) fn is_over(&self) -> bool {
        self.take == Some(0)
    }

    /// The part of the next block that belongs to it. Lines keep their ends; the last one of a file
    /// is as it is.
    pub(crate) fn cut(&mut self, block: &[u8]) -> Range<usize> {
        let mut ends = memchr_iter(b'\n', block);
        let mut start = 0;
        while self.skip > 0 {
            let Some(end) = ends.next() else {
                return 0..0;
            };
            self.skip -= 1;
            start = end + 1;
        }
        let Some(take) = &mut self.take else {
            return start..block.len();
        };
        let mut end = start;
        while *take > 0 {
            let Some(at) = ends.next() else {
                return start..block.len();
            };
            *take -= 1;
            end = at + 1;
        }
        start..end
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_out_whatever_the_blocks() {
        let text = b"one\ntwo\r\n\nfour\nlast";
        for (first, limit, wanted) in [
            (1, None, &text[..]),
            (1, Some(1), b"one\n"),
            (2, Some(2), b"two\r\n\n"),
            (4, None, b"four\nlast"),
            (5, Some(10), b"last"),
            (6, None, b""),
            (1, Some(0), b""),
            (u64::MAX, Some(u64::MAX), b""),
        ] {
            for size in 1..=text.len() {
                let mut window = LineWindow::new(first, limit);
                let mut cut = Vec::new();
                for block in text.chunks(size) {
                    cut.extend_from_slice(&block[window.cut(block)]);
                }
                assert_eq!(cut, wanted, "{first} {limit:?} in blocks of {size}");
            }
        }
    }
}
