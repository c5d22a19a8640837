//! Pure. Reads `multipart/form-data` as it arrives, without copying file content and without
//! holding more of it than a delimiter's length.

use bytes::{Buf, Bytes};
use memchr::memmem;

use crate::limits::PART_HEAD_BYTES_MAX;

/// What comes next in a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A part begins; its `name`.
    Start(String),
    /// Some of its content.
    Data(Bytes),
    /// It is complete.
    End,
}

/// Why a body is broken, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) &'static str);

/// Where the reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// Right behind a delimiter, which another part or the end follows.
    Delimiter,
    /// In the rest of a delimiter's line.
    DelimiterLine,
    /// In the head of a part.
    Head,
    /// In the content of a part.
    Content,
    /// Behind the last delimiter.
    Done,
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Parser {
    /// `\r\n--boundary`.
    delimiter: memmem::Finder<'static>,
    state: State,
    /// Bytes whose meaning depends on what follows.
    carry: Vec<u8>,
    input: Bytes,
}

/// What [`Parser::content`] found.
enum Found {
    Data(Bytes),
    Delimiter,
    Nothing,
}

impl Parser {
    /// A reader for the boundary that a `Content-Type` names.
    ///
    /// # Errors
    /// When the header names none.
    pub(crate) fn new(content_type: &str) -> Result<Self, Broken> {
        let broken = Broken("the Content-Type is not multipart/form-data with a boundary");
        let (kind, parameters) = content_type.split_once(';').ok_or(broken)?;
        if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
            return Err(broken);
        }
        let boundary = parameter(parameters, "boundary").ok_or(broken)?;
        if boundary.is_empty() || boundary.len() > 200 {
            return Err(broken);
        }
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        Ok(Self {
            delimiter: memmem::Finder::new(&delimiter).into_owned(),
            state: State::Preamble,
            // The first delimiter may stand at the very start, without a line end before it.
            carry: b"\r\n".to_vec(),
            input: Bytes::new(),
        })
    }

    /// Takes what has arrived; every piece of it must be taken before more is given.
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        self.input = bytes;
    }

    /// The next piece, or nothing until more has arrived.
    ///
    /// # Errors
    /// When the body is broken.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, Broken> {
        loop {
            match self.state {
                State::Preamble => match self.content() {
                    Found::Data(_) => {}
                    Found::Delimiter => self.state = State::Delimiter,
                    Found::Nothing => return Ok(None),
                },
                State::Content => match self.content() {
                    Found::Data(data) => return Ok(Some(Piece::Data(data))),
                    Found::Delimiter => {
                        self.state = State::Delimiter;
                        return Ok(Some(Piece::End));
                    }
                    Found::Nothing => return Ok(None),
                },
                State::Delimiter => {
                    let missing = (2 - self.carry.len()).min(self.input.len());
                    self.carry.extend_from_slice(&self.input.split_to(missing));
                    match self.carry.as_slice() {
                        b"--" => self.state = State::Done,
                        [_, _] => self.state = State::DelimiterLine,
                        _ => return Ok(None),
                    }
                }
                State::DelimiterLine => match self.take_until(b"\r\n")? {
                    Some(line) if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) => {
                        self.state = State::Head;
                    }
                    Some(_) => {
                        return Err(Broken(
                            "something else than a line end is behind a boundary",
                        ));
                    }
                    None => return Ok(None),
                },
                State::Head => {
                    let Some(head) = self.take_until(b"\r\n\r\n")? else {
                        return Ok(None);
                    };
                    let name = part_name(&head).ok_or(Broken("a part has no name in its head"))?;
                    self.state = State::Content;
                    return Ok(Some(Piece::Start(name)));
                }
                State::Done => {
                    self.input.clear();
                    return Ok(None);
                }
            }
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// When it ended too early.
    pub(crate) fn finish(&self) -> Result<(), Broken> {
        if self.state == State::Done {
            Ok(())
        } else {
            Err(Broken("the body ends before its closing boundary"))
        }
    }

    /// Content up to the next delimiter, as far as it has arrived.
    fn content(&mut self) -> Found {
        if !self.carry.is_empty() {
            return self.content_at_seam();
        }
        if let Some(at) = self.delimiter.find(&self.input) {
            if at > 0 {
                return Found::Data(self.input.split_to(at));
            }
            self.input.advance(self.delimiter.needle().len());
            return Found::Delimiter;
        }
        let undecided = self.undecided(&self.input);
        let data = self.input.split_to(self.input.len() - undecided);
        self.carry.extend_from_slice(&self.input);
        self.input.clear();
        if data.is_empty() {
            Found::Nothing
        } else {
            Found::Data(data)
        }
    }

    /// The same where a delimiter may have begun in what arrived earlier.
    fn content_at_seam(&mut self) -> Found {
        let needle_len = self.delimiter.needle().len();
        let before = self.carry.len();
        let taken = self.input.len().min(needle_len - 1);
        self.carry
            .extend_from_slice(self.input.get(..taken).unwrap_or_default());
        if let Some(at) = self.delimiter.find(&self.carry) {
            self.input.advance(at + needle_len - before);
            self.carry.truncate(at);
            if at == 0 {
                return Found::Delimiter;
            }
            // Found again, at the start of the carry, by the next call.
            let needle = self.delimiter.needle().to_vec();
            return Found::Data(std::mem::replace(&mut self.carry, needle).into());
        }
        if taken < self.input.len() {
            // A delimiter from the carry would have been complete by now.
            self.carry.truncate(before);
            return Found::Data(std::mem::take(&mut self.carry).into());
        }
        self.input.clear();
        let undecided = self.undecided(&self.carry);
        let rest = self.carry.split_off(self.carry.len() - undecided);
        let data = std::mem::replace(&mut self.carry, rest);
        if data.is_empty() {
            Found::Nothing
        } else {
            Found::Data(data.into())
        }
    }

    /// How many bytes at the end of `bytes` may be the start of a delimiter.
    fn undecided(&self, bytes: &[u8]) -> usize {
        let needle = self.delimiter.needle();
        let most = bytes.len().min(needle.len() - 1);
        let starts = |len: &usize| bytes.ends_with(needle.get(..*len).unwrap_or_default());
        (1..=most).rev().find(starts).unwrap_or(0)
    }

    /// Everything up to `end`, once that has arrived.
    fn take_until(&mut self, end: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        let before = self.carry.len();
        let taken = self.input.len().min(PART_HEAD_BYTES_MAX);
        self.carry
            .extend_from_slice(self.input.get(..taken).unwrap_or_default());
        if let Some(at) = memmem::find(&self.carry, end) {
            self.input.advance(at + end.len() - before);
            self.carry.truncate(at);
            return Ok(Some(std::mem::take(&mut self.carry)));
        }
        if self.carry.len() > PART_HEAD_BYTES_MAX {
            return Err(Broken("the head of a part is too long"));
        }
        self.input.clear();
        Ok(None)
    }
}

/// The `name` of a part, from its head.
fn part_name(head: &[u8]) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n").map_while(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    let (kind, parameters) = value.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return None;
    }
    parameter(parameters, "name")
}

/// One of `a=b; c="d;\"e"`.
fn parameter(mut text: &str, wanted: &str) -> Option<String> {
    loop {
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(';').unwrap_or(rest.len());
                let (value, rest) = rest.split_at(end);
                (value.trim().to_owned(), rest)
            }
        };
        let name = name.trim_start_matches([';', ' ', '\t']).trim();
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        text = rest;
    }
}

/// The text up to the closing quote, and what stands behind it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
