//! HTTP/1.1 by hand: one connection, one request at a time, nothing between us and the socket, so
//! that what is measured is the other end.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use memchr::memmem;

use crate::ticker;

/// Longest silence of the other end.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;
/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A kept connection.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    /// Of a fixed size; read and not used yet is `buffer[at..end]`.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    headers: String,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// What is sent behind the head of a request.
pub(crate) enum Body<'a> {
    Nothing,
    Json(&'a str),
    /// A block so many times, between two texts, with its content type.
    Repeated {
        kind: &'a str,
        head: &'a [u8],
        block: &'a [u8],
        times: u64,
        tail: &'a [u8],
    },
}

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The body, unless it was only counted.
    pub(crate) body: Vec<u8>,
    pub(crate) body_bytes: u64,
    /// When the first event of output was there.
    pub(crate) first_output: Option<Duration>,
}

/// What becomes of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    Keep,
    Count,
}

enum Length {
    Known(u64),
    Chunked,
}

impl Connection {
    /// Connects by TCP; `key` goes along with every request.
    pub(crate) fn tcp(address: &str, key: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Self::over(Box::new(stream), address, key))
    }

    /// Connects to a Unix socket.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Self::over(Box::new(stream), "localhost", ""))
    }

    fn over(stream: Box<dyn Stream>, host: &str, key: &str) -> Self {
        let mut headers = format!("Host: {host}\r\nUser-Agent: barchan-bench\r\n");
        if !key.is_empty() {
            headers.push_str(&format!("OPEN-SANDBOX-API-KEY: {key}\r\n"));
        }
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            at: 0,
            end: 0,
            headers,
        }
    }

    /// Sends a header with every request from now on.
    pub(crate) fn always(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Asks and takes the whole answer.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &Body<'_>,
        take: Take,
    ) -> io::Result<Answer> {
        self.send(method, path, body)?;
        let (status, length) = self.head()?;
        let mut answer = Answer {
            status,
            ..Answer::default()
        };
        match length {
            Length::Known(bytes) => self.take(bytes, take, &mut answer)?,
            Length::Chunked => loop {
                let line = self.line()?;
                let size = u64::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
                self.take(size, take, &mut answer)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            },
        }
        Ok(answer)
    }

    fn send(&mut self, method: &str, path: &str, body: &Body<'_>) -> io::Result<()> {
        let (kind, length) = match body {
            Body::Nothing => ("", 0),
            Body::Json(text) => ("application/json", text.len() as u64),
            Body::Repeated {
                kind,
                head,
                block,
                times,
                tail,
            } => {
                let around = (head.len() + tail.len()) as u64;
                (*kind, around + block.len() as u64 * times)
            }
        };
        let mut head = format!("{method} {path} HTTP/1.1\r\n{}", self.headers);
        if !kind.is_empty() {
            head.push_str(&format!(
                "Content-Type: {kind}\r\nContent-Length: {length}\r\n"
            ));
        }
        head.push_str("\r\n");
        match body {
            Body::Nothing => self.stream.write_all(head.as_bytes()),
            Body::Json(text) => {
                head.push_str(text);
                self.stream.write_all(head.as_bytes())
            }
            Body::Repeated {
                head: first,
                block,
                times,
                tail,
                ..
            } => {
                self.stream.write_all(head.as_bytes())?;
                self.stream.write_all(first)?;
                for _ in 0..*times {
                    self.stream.write_all(block)?;
                }
                self.stream.write_all(tail)
            }
        }
    }

    fn head(&mut self) -> io::Result<(u16, Length)> {
        let end = loop {
            let unused = self.unused();
            if let Some(end) = memmem::find(unused, b"\r\n\r\n") {
                break self.at + end + 4;
            }
            if unused.len() > HEAD_BYTES_MAX {
                return Err(io::Error::other("the head of the answer is endless"));
            }
            self.fill()?;
        };
        let head = self.buffer.get(self.at..end).unwrap_or_default();
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        self.at = end;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status in the answer"))?;
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        if value("transfer-encoding:").is_some_and(|value| value == "chunked") {
            return Ok((status, Length::Chunked));
        }
        let length = value("content-length:").and_then(|value| value.parse().ok());
        Ok((status, Length::Known(length.unwrap_or(0))))
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            let unused = self.unused();
            if let Some(end) = memchr::memchr(b'\n', unused) {
                let line = unused.get(..=end).unwrap_or_default();
                let line = String::from_utf8_lossy(line).into_owned();
                self.at += end + 1;
                return Ok(line);
            }
            self.fill()?;
        }
    }

    fn take(&mut self, bytes: u64, take: Take, answer: &mut Answer) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.at == self.end {
                self.fill()?;
            }
            let unused = self.unused();
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let piece = unused.get(..unused.len().min(most)).unwrap_or_default();
            if take == Take::Keep {
                answer.body.extend_from_slice(piece);
                if answer.first_output.is_none()
                    && memmem::find(&answer.body, b"\"stdout\"").is_some()
                {
                    answer.first_output = Some(ticker::now());
                }
            }
            answer.body_bytes += piece.len() as u64;
            left -= piece.len() as u64;
            self.at += piece.len();
        }
        Ok(())
    }

    fn unused(&self) -> &[u8] {
        self.buffer.get(self.at..self.end).unwrap_or_default()
    }

    /// Reads more, once there is room for it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.stream.read(room)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            got => {
                self.end += got;
                Ok(())
            }
        }
    }
}
