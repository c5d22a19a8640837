//! Pure. The output of a background command: its end, up to a limit, addressed by byte offset.
//!
//! Offsets count every byte that was ever printed, so a caller that hands back the cursor it got
//! sees each byte once, whether or not the front has been dropped meanwhile.

use std::collections::VecDeque;

use super::lines::whole_characters;

/// A log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: VecDeque<u8>,
    /// Bytes dropped from the front.
    dropped: u64,
}

/// A piece of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The text; bytes that are no UTF-8 are replaced.
    pub(crate) text: String,
    /// Where to go on.
    pub(crate) cursor: u64,
}

impl Log {
    /// Appends, and drops the oldest bytes beyond `bytes_max`.
    pub(crate) fn push(&mut self, bytes: &[u8], bytes_max: usize) {
        self.kept.extend(bytes);
        self.shorten(bytes_max);
    }

    /// Drops the oldest bytes beyond `bytes_max`.
    pub(crate) fn shorten(&mut self, bytes_max: usize) {
        let excess = self.kept.len().saturating_sub(bytes_max);
        if excess > 0 {
            self.kept.drain(..excess);
            self.dropped += excess as u64;
            if bytes_max == 0 {
                self.kept.shrink_to_fit();
            }
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// What stands behind `cursor`; a cursor beyond the end is the end. While the command runs, a
    /// character of which only a part has been printed is left for the next call.
    pub(crate) fn tail(&self, cursor: u64, running: bool) -> Tail {
        let end = self.dropped + self.kept.len() as u64;
        let start = cursor.min(end);
        let gap = self.dropped.saturating_sub(start);
        let skipped = start.saturating_sub(self.dropped) as usize;
        let (front, back) = self.kept.as_slices();
        let split = skipped.min(front.len());
        let mut bytes = front.get(split..).unwrap_or_default().to_vec();
        bytes.extend_from_slice(back.get(skipped - split..).unwrap_or_default());
        let mut next = end;
        if running {
            let whole = whole_characters(&bytes);
            next -= (bytes.len() - whole) as u64;
            bytes.truncate(whole);
        }
        let mut text = String::new();
        if gap > 0 {
            text = format!("[barchan: {gap} bytes of older output are no longer kept]\n");
        }
        text.push_str(&String::from_utf8_lossy(&bytes));
        Tail { text, cursor: next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(text: &str, cursor: u64) -> Tail {
        Tail {
            text: text.to_owned(),
            cursor,
        }
    }

    #[test]
    fn a_cursor_that_is_handed_back_shows_only_what_is_new() {
        let mut log = Log::default();
        log.push(b"one\n", 100);
        assert_eq!(log.tail(0, true), tail("one\n", 4));
        assert_eq!(log.tail(4, true), tail("", 4));
        assert_eq!(log.tail(10_000_000, true), tail("", 4));
        log.push(b"two\n", 100);
        assert_eq!(log.tail(4, true), tail("two\n", 8));
        assert_eq!(log.tail(2, true), tail("e\ntwo\n", 8));
    }

    #[test]
    fn the_front_is_dropped_and_that_is_said() {
        let mut log = Log::default();
        log.push(b"0123456789", 4);
        assert_eq!(log.len(), 4);
        let gap = "[barchan: 6 bytes of older output are no longer kept]\n6789";
        assert_eq!(log.tail(0, true), tail(gap, 10));
        assert_eq!(log.tail(7, true), tail("789", 10));
        log.shorten(0);
        assert_eq!(log.tail(10, false), tail("", 10));
    }

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let mut log = Log::default();
        log.push(b"a\xc3", 100);
        assert_eq!(log.tail(0, true), tail("a", 1));
        assert_eq!(log.tail(0, false), tail("a\u{fffd}", 2));
        log.push(b"\xa9\xff!", 100);
        assert_eq!(log.tail(1, true), tail("é\u{fffd}!", 5));
    }
}
