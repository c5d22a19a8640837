//! Pure. The framing of ZMTP 3.0, by which kernels talk: what a client writes, and a decoder for
//! what it reads.
//!
//! Written here rather than taken from a library because the other end is hostile: a frame may
//! announce any length, and a message any number of frames. What is too large is counted and
//! passed over, never held.

use bytes::{Buf, Bytes, BytesMut};

/// What both ends send first: signature, version 3.0, the mechanism NULL, nothing else.
pub(crate) const GREETING: [u8; 64] = {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[8] = 1;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12] = b'N';
    greeting[13] = b'U';
    greeting[14] = b'L';
    greeting[15] = b'L';
    greeting
};

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Whether a peer's greeting is one that this client can go on with.
pub(crate) fn is_greeting(bytes: &[u8; 64]) -> bool {
    let [signature, .., end] = bytes.first_chunk::<10>().copied().unwrap_or_default();
    let major = bytes.get(10).copied().unwrap_or_default();
    let mechanism = bytes.get(12..32).unwrap_or_default();
    signature == 0xff
        && end == 0x7f
        && major >= 3
        && mechanism
            .strip_prefix(b"NULL")
            .is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// The command that ends the handshake: what kind of socket this is, and by which name the peer
/// may know it.
pub(crate) fn ready(socket: &str, identity: &str) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    for (name, value) in [("Socket-Type", socket), ("Identity", identity)] {
        body.push(name.len() as u8);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    let mut frame = Vec::new();
    put(&mut frame, COMMAND, &body);
    frame
}

/// A message of these frames.
pub(crate) fn message(frames: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
    for (at, frame) in frames.iter().enumerate() {
        let more = if at + 1 < frames.len() { MORE } else { 0 };
        put(&mut out, more, frame);
    }
    out
}

fn put(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(short) => out.extend_from_slice(&[flags, short]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// What a peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// A command of the transport; clients need none of them after the first.
    Command,
    /// A message.
    Message(Vec<Bytes>),
    /// A message that is too large or has too many frames, passed over; its bytes.
    Oversized(u64),
}

/// A frame whose length no peer that means well announces: the connection is of no more use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// Makes messages of bytes as they come. It holds at most `bytes_max` and what was pushed last.
#[derive(Debug)]
pub(crate) struct Decoder {
    unread: BytesMut,
    frames: Vec<Bytes>,
    bytes_max: u64,
    frames_max: usize,
    /// Bytes of the message that is being read, those passed over included.
    bytes: u64,
    /// How much of a frame is still to be passed over.
    skip: u64,
    /// Whether another frame follows the one that is passed over.
    skipped_more: bool,
    oversized: bool,
}

impl Decoder {
    /// A decoder with these limits.
    pub(crate) fn new(bytes_max: u64, frames_max: usize) -> Self {
        Self {
            unread: BytesMut::new(),
            frames: Vec::new(),
            bytes_max,
            frames_max,
            bytes: 0,
            skip: 0,
            skipped_more: false,
            oversized: false,
        }
    }

    /// Adds what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The next item, if all of it is there.
    pub(crate) fn next(&mut self) -> Result<Option<Item>, Broken> {
        loop {
            if self.oversized && !self.pass_over() {
                return Ok(None);
            }
            if let Some(item) = self.ended_oversized() {
                return Ok(Some(item));
            }
            let Some((flags, head, len)) = self.head()? else {
                return Ok(None);
            };
            let more = flags & MORE != 0;
            self.oversized |= self.bytes.saturating_add(len) > self.bytes_max
                || self.frames.len() >= self.frames_max;
            if self.oversized {
                self.unread.advance(head);
                self.frames.clear();
                self.bytes = self.bytes.saturating_add(len);
                (self.skip, self.skipped_more) = (len, more);
                continue;
            }
            // The limit has made it fit.
            let whole = head + len as usize;
            if self.unread.len() < whole {
                return Ok(None);
            }
            self.unread.advance(head);
            let body = self.unread.split_to(whole - head).freeze();
            if flags & COMMAND != 0 {
                return Ok(Some(Item::Command));
            }
            self.bytes += len;
            self.frames.push(body);
            if !more {
                self.bytes = 0;
                return Ok(Some(Item::Message(std::mem::take(&mut self.frames))));
            }
        }
    }

    /// Flags, length of the head and length of the body of the frame that comes next.
    fn head(&self) -> Result<Option<(u8, usize, u64)>, Broken> {
        let Some(flags) = self.unread.first().copied() else {
            return Ok(None);
        };
        if flags & LONG == 0 {
            let len = self.unread.get(1).copied();
            return Ok(len.map(|len| (flags, 2, u64::from(len))));
        }
        let Some(len) = self.unread.get(1..).and_then(<[u8]>::first_chunk::<8>) else {
            return Ok(None);
        };
        let len = u64::from_be_bytes(*len);
        if len > u64::MAX / 2 {
            return Err(Broken);
        }
        Ok(Some((flags, 9, len)))
    }

    /// Drops what is to be passed over and has come; whether that is all of it.
    fn pass_over(&mut self) -> bool {
        let now = self.skip.min(self.unread.len() as u64);
        self.unread.advance(now as usize);
        self.skip -= now;
        self.skip == 0
    }

    fn ended_oversized(&mut self) -> Option<Item> {
        if !self.oversized || self.skipped_more {
            return None;
        }
        self.oversized = false;
        Some(Item::Oversized(std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
