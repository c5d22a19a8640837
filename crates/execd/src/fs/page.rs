//! Pure. Cuts a page of lines out of a text that arrives in blocks. `\n`, `\r\n` and a lone `\r`
//! end a line; on the page each is `\n`.

use memchr::memchr2;

/// A page while the text goes by.
#[derive(Debug)]
pub(super) struct Page {
    offset: u64,
    limit: u64,
    bytes_max: usize,
    text: Vec<u8>,
    /// Lines that have ended so far.
    ended: u64,
    /// Whole lines on the page.
    taken: u64,
    /// A line has begun and not ended.
    open: bool,
    /// The last byte was a `\r`, so a `\n` is no line of its own.
    after_return: bool,
    /// The page was full in the middle of a line.
    cut: bool,
    /// A line began behind the page.
    more: bool,
}

/// A page, once everything that it needs has gone by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The lines, without the last one's end.
    pub(super) text: Vec<u8>,
    /// How many lines it counts as; at least one.
    pub(super) lines: u64,
    /// Lines of the whole text, if its end was seen.
    pub(super) total: Option<u64>,
    /// Where to go on; `None` at the end.
    pub(super) next: Option<u64>,
    /// Whether a line was cut.
    pub(super) cut: bool,
    /// Whether the text ends with a line end, if its end was seen.
    pub(super) final_newline: Option<bool>,
}

impl Page {
    /// A page of `limit` lines, at least one, behind `offset` others, in at most so many bytes.
    pub(super) fn new(offset: u64, limit: u64, bytes_max: usize) -> Self {
        Self {
            offset,
            limit,
            bytes_max,
            text: Vec::new(),
            ended: 0,
            taken: 0,
            open: false,
            after_return: false,
            cut: false,
            more: false,
        }
    }

    /// Whether nothing that follows changes the page; only the count of lines.
    pub(super) fn is_settled(&self) -> bool {
        self.more
    }

    /// Takes the next block.
    pub(super) fn feed(&mut self, block: &[u8]) {
        let mut rest = block;
        if self.after_return
            && let [first, behind @ ..] = rest
        {
            self.after_return = false;
            if *first == b'\n' {
                rest = behind;
            }
        }
        while !rest.is_empty() {
            let Some(at) = memchr2(b'\n', b'\r', rest) else {
                self.bytes(rest);
                return;
            };
            let (line, end) = rest.split_at(at);
            self.bytes(line);
            self.end_line();
            rest = match end {
                [b'\r', b'\n', behind @ ..] => behind,
                [b'\r'] => {
                    self.after_return = true;
                    return;
                }
                [_, behind @ ..] => behind,
                [] => return,
            };
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.begin_line();
            self.append(bytes);
        }
    }

    fn begin_line(&mut self) {
        if self.open {
            return;
        }
        self.open = true;
        self.more = self.more || self.cut || self.taken == self.limit;
        if self.taken > 0 {
            self.append(b"\n");
        }
    }

    fn end_line(&mut self) {
        self.begin_line();
        self.count_line();
        self.open = false;
    }

    fn count_line(&mut self) {
        self.taken += u64::from(self.is_on_page());
        self.ended += 1;
    }

    fn is_on_page(&self) -> bool {
        self.ended >= self.offset && self.taken < self.limit && !self.cut
    }

    fn append(&mut self, bytes: &[u8]) {
        if !self.is_on_page() {
            return;
        }
        let room = self.bytes_max.saturating_sub(self.text.len());
        self.cut = bytes.len() > room;
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.text.extend_from_slice(taken);
    }

    /// The page. An error is the number of lines of a text that is shorter than the offset.
    pub(super) fn finish(mut self, at_end: bool) -> Result<Cut, u64> {
        let final_newline = at_end.then_some(!self.open);
        if at_end && self.open {
            self.count_line();
        }
        if self.taken == 0 && !self.cut {
            return Err(self.ended);
        }
        if self.cut {
            self.text.truncate(whole_characters(&self.text));
        }
        // A line that is longer than a page counts as read, or a reader would never get past it.
        let lines = self.taken.max(1);
        let end = self.offset + lines;
        let total = at_end.then_some(self.ended);
        Ok(Cut {
            text: self.text,
            lines,
            total,
            next: total.is_none_or(|total| end < total).then_some(end),
            cut: self.cut,
            final_newline,
        })
    }
}

/// How much of a text to keep so that no character is cut in two.
fn whole_characters(text: &[u8]) -> usize {
    let tail = text.len().saturating_sub(3);
    for at in (tail..text.len()).rev() {
        let Some(byte) = text.get(at) else { break };
        let needed = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        let have = text.len() - at;
        return if have < needed { at } else { text.len() };
    }
    text.len()
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
