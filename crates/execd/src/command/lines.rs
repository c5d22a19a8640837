//! Pure. Cuts what a program prints into lines, wherever the reads happened to end.
//!
//! A line ends with `\n`, `\r\n` or `\r`. Whether a `\r` stands alone is known only from the byte
//! behind it, so a `\r` at the end of a read waits for the next one, or for [`Lines::settle`]. A
//! character never spans two lines, so decoding whole lines keeps every character whole.

use std::borrow::Cow;

use memchr::memchr2;

/// The splitter of one stream.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Whether texts carry their line end.
    keep_ends: bool,
    /// Longest line, in bytes.
    bytes_max: usize,
    /// The line that has not ended yet.
    partial: Vec<u8>,
    /// Bytes of that line that were too many.
    left_out: u64,
    /// That line ends with a `\r` which may be half of a `\r\n`.
    returned: bool,
    /// A `\r` was taken for a line end; a `\n` right behind it belongs to it.
    settled: bool,
}

impl Lines {
    /// A splitter; without `keep_ends` line ends are stripped and an empty line is "\n", as older
    /// clients expect it.
    pub(crate) fn new(keep_ends: bool, bytes_max: usize) -> Self {
        Self {
            keep_ends,
            bytes_max,
            partial: Vec::new(),
            left_out: 0,
            returned: false,
            settled: false,
        }
    }

    /// Takes what was read and hands out every line that is complete now.
    pub(crate) fn push(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(Cow<'_, str>)) {
        if self.returned
            && let Some((first, rest)) = bytes.split_first()
        {
            self.returned = false;
            if *first == b'\n' {
                bytes = rest;
                self.end(b"\r\n", 2, emit);
            } else {
                self.end(b"\r", 1, emit);
            }
        }
        if self.settled
            && let Some((first, rest)) = bytes.split_first()
        {
            self.settled = false;
            if *first == b'\n' {
                bytes = rest;
                if self.keep_ends {
                    emit(Cow::Borrowed("\n"));
                }
            }
        }
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let end_bytes = match bytes.get(at..) {
                Some([b'\r']) => {
                    self.store(bytes.get(..at).unwrap_or_default());
                    self.returned = true;
                    return;
                }
                Some([b'\r', b'\n', ..]) => 2,
                _ => 1,
            };
            let (line, rest) = bytes.split_at(at + end_bytes);
            self.end(line, end_bytes, emit);
            bytes = rest;
        }
        self.store(bytes);
    }

    /// Whether a line waits for the byte behind its `\r`.
    pub(crate) fn waits(&self) -> bool {
        self.returned
    }

    /// Nothing came behind the `\r`: the line is complete.
    pub(crate) fn settle(&mut self, emit: &mut impl FnMut(Cow<'_, str>)) {
        if self.returned {
            self.returned = false;
            self.settled = true;
            self.end(b"\r", 1, emit);
        }
    }

    /// The stream has ended: hands out what is left.
    pub(crate) fn finish(&mut self, emit: &mut impl FnMut(Cow<'_, str>)) {
        if self.returned {
            self.returned = false;
            self.end(b"\r", 1, emit);
        } else if !self.partial.is_empty() {
            self.end(b"", 0, emit);
        }
    }

    /// Adds to the open line, as far as it may grow.
    fn store(&mut self, bytes: &[u8]) {
        let room = self.bytes_max - self.partial.len().min(self.bytes_max);
        let (kept, left_out) = bytes.split_at(bytes.len().min(room));
        if self.left_out == 0 {
            self.partial.extend_from_slice(kept);
            self.left_out = left_out.len() as u64;
        } else {
            self.left_out += bytes.len() as u64;
        }
    }

    /// Hands out the open line and `rest`, the last `end_bytes` of which are the line end.
    fn end(&mut self, rest: &[u8], end_bytes: usize, emit: &mut impl FnMut(Cow<'_, str>)) {
        let (tail, end) = rest.split_at(rest.len() - end_bytes);
        let (shown, end) = if self.keep_ends {
            (rest, end)
        } else {
            (tail, &[][..])
        };
        if self.partial.is_empty() && self.left_out == 0 && tail.len() <= self.bytes_max {
            emit(text(shown));
            return;
        }
        self.store(tail);
        let mut line = std::mem::take(&mut self.partial);
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let whole = whole_characters(&line);
            let left_out = left_out + (line.len() - whole) as u64;
            line.truncate(whole);
            let marker = format!("[barchan: {left_out} more bytes of this line left out]");
            line.extend_from_slice(marker.as_bytes());
        }
        line.extend_from_slice(end);
        emit(text(&line));
    }
}

/// What a client is shown of a line; an event without a text would be no line.
fn text(line: &[u8]) -> Cow<'_, str> {
    if line.is_empty() {
        Cow::Borrowed("\n")
    } else {
        String::from_utf8_lossy(line)
    }
}

/// Length of `bytes` without a character that was cut at its end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let lead = bytes
        .get(tail..)
        .unwrap_or_default()
        .iter()
        .rposition(|byte| byte & 0xC0 != 0x80);
    let Some(at) = lead.map(|at| tail + at) else {
        return bytes.len();
    };
    let needed = match bytes.get(at).copied().unwrap_or_default() {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if at + needed > bytes.len() {
        at
    } else {
        bytes.len()
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
