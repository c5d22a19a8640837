//! Streams over a connection that is used for more than one: pieces, each with its length before
//! it, and one of no length at the end. So a stream that breaks off is told from one that is whole.

use std::io::{self, ErrorKind, Read, Write};

/// Longest piece, in bytes.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;

/// Stands for a length where no more comes.
const BROKEN_OFF: u32 = u32::MAX;

/// Writes a stream.
#[derive(Debug)]
pub struct Sender<W> {
    out: W,
}

impl<W: Write> Sender<W> {
    /// Begins one.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Breaks it off; a message that says why is to follow.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn break_off(mut self) -> io::Result<()> {
        self.out.write_all(&BROKEN_OFF.to_be_bytes())?;
        self.out.flush()
    }

    /// Ends it.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn end(mut self) -> io::Result<()> {
        self.out.write_all(&[0; 4])?;
        self.out.flush()
    }
}

impl<W: Write> Write for Sender<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes);
        if piece.is_empty() {
            return Ok(0);
        }
        self.out.write_all(&(piece.len() as u32).to_be_bytes())?;
        self.out.write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a stream up to its end.
#[derive(Debug)]
pub struct Receiver<R> {
    input: R,
    left: usize,
    is_over: bool,
}

impl<R: Read> Receiver<R> {
    /// Begins to read one.
    pub fn new(input: R) -> Self {
        Self {
            input,
            left: 0,
            is_over: false,
        }
    }
}

impl<R: Read> Read for Receiver<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over || into.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            let mut length = [0; 4];
            self.input.read_exact(&mut length)?;
            let length = u32::from_be_bytes(length);
            if length == BROKEN_OFF {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            self.left = length as usize;
            if self.left > PIECE_BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            if self.left == 0 {
                self.is_over = true;
                return Ok(0);
            }
        }
        let most = self.left.min(into.len());
        match self.input.read(into.get_mut(..most).unwrap_or_default())? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            got => {
                self.left -= got;
                Ok(got)
            }
        }
    }
}

/// Sends a message: a stream of one piece.
///
/// # Errors
/// When the other side is gone, or it is too long or empty.
pub fn say(mut out: impl Write, message: &[u8]) -> io::Result<()> {
    if message.is_empty() || message.len() > PIECE_BYTES_MAX {
        return Err(ErrorKind::InvalidInput.into());
    }
    out.write_all(&(message.len() as u32).to_be_bytes())?;
    out.write_all(message)?;
    out.flush()
}

/// Receives a message.
///
/// # Errors
/// When the other side is gone, or it is too long or empty.
pub fn hear(mut input: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length == 0 || length > PIECE_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    input.read_exact(&mut message)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_messages_share_a_connection() {
        let content: Vec<u8> = (0..PIECE_BYTES_MAX * 2 + 7).map(|at| at as u8).collect();
        let mut wire = Vec::new();
        for part in [&content[..], b"", b"x"] {
            let mut sender = Sender::new(&mut wire);
            sender.write_all(part).unwrap();
            sender.end().unwrap();
            say(&mut wire, b"message").unwrap();
        }
        let mut input = wire.as_slice();
        for part in [&content[..], b"", b"x"] {
            let mut got = Vec::new();
            Receiver::new(&mut input).read_to_end(&mut got).unwrap();
            assert!(got == part);
            assert_eq!(hear(&mut input).unwrap(), b"message");
        }
        assert!(input.is_empty());
    }

    #[test]
    fn a_stream_that_is_broken_off_says_why() {
        let mut wire = Vec::new();
        let mut sender = Sender::new(&mut wire);
        sender.write_all(b"part").unwrap();
        sender.break_off().unwrap();
        say(&mut wire, b"why").unwrap();
        let (mut input, mut got) = (wire.as_slice(), Vec::new());
        let error = Receiver::new(&mut input).read_to_end(&mut got).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
        assert_eq!(
            (got.as_slice(), hear(input).unwrap()),
            (&b"part"[..], b"why".to_vec())
        );
    }

    #[test]
    fn what_breaks_off_or_is_too_long_is_an_error() {
        let mut whole = Vec::new();
        let mut sender = Sender::new(&mut whole);
        sender.write_all(b"content").unwrap();
        sender.end().unwrap();
        for cut in 0..whole.len() {
            let mut got = Vec::new();
            let error = Receiver::new(&whole[..cut]).read_to_end(&mut got);
            assert_eq!(error.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
        let long = [0x7f; 8];
        assert!(Receiver::new(&long[..]).read(&mut [0; 8]).is_err());
        assert!(hear(&long[..]).is_err() && hear(&[0; 4][..]).is_err());
    }
}
