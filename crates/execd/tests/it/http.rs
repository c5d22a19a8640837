//! As much of an HTTP client as these tests need: one connection per request, every byte visible.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Status and code of an error, whose body must be what clients parse.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert!(
            body["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{self:?}"
        );
        assert_eq!(self.header("content-type"), Some("application/json"));
        (self.status, body["code"].as_str().unwrap().to_owned())
    }
}

/// An answer whose head has been read.
pub(crate) struct Open {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    connection: BufReader<UnixStream>,
    left: Left,
}

enum Left {
    Length(u64),
    Chunks,
    ToTheEnd,
}

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends raw bytes and reads the head of the answer.
pub(crate) fn send_raw(socket: &Path, request: &[u8]) -> Open {
    let mut connection = UnixStream::connect(socket).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.set_write_timeout(Some(PATIENCE)).unwrap();
    connection.write_all(request).unwrap();
    read_head(connection)
}

/// Reads the head of an answer.
pub(crate) fn read_head(connection: UnixStream) -> Open {
    let mut connection = BufReader::new(connection);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(
            connection.read_line(&mut line).unwrap() > 0,
            "no answer, but {lines:?}"
        );
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let status: u16 = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let of = |name: &str| {
        headers
            .iter()
            .find(|header| header.0 == name)
            .map(|it| it.1.as_str())
    };
    let left = match (of("transfer-encoding"), of("content-length")) {
        // An answer without content, whatever its headers say.
        _ if status == 304 => Left::Length(0),
        (Some("chunked"), _) => Left::Chunks,
        (_, Some(length)) => Left::Length(length.parse().unwrap()),
        _ => Left::ToTheEnd,
    };
    Open {
        status,
        headers,
        connection,
        left,
    }
}

impl Open {
    /// The next piece of the body; `None` at its proper end.
    pub(crate) fn piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        match &mut self.left {
            Left::Length(0) => Ok(None),
            Left::Length(left) => {
                let mut piece = vec![0; (*left).min(1 << 20) as usize];
                let taken = self.connection.read(&mut piece)?;
                *left -= taken as u64;
                piece.truncate(taken);
                if taken == 0 {
                    Err(broken())
                } else {
                    Ok(Some(piece))
                }
            }
            Left::Chunks => {
                let mut size = String::new();
                self.connection.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim_end(), 16).map_err(|_| broken())?;
                let mut piece = vec![0; size + 2];
                self.connection.read_exact(&mut piece)?;
                piece.truncate(size);
                Ok(if size == 0 { None } else { Some(piece) })
            }
            Left::ToTheEnd => {
                let mut piece = Vec::new();
                self.connection.read_to_end(&mut piece)?;
                self.left = Left::Length(0);
                Ok(if piece.is_empty() { None } else { Some(piece) })
            }
        }
    }

    /// Reads the rest.
    pub(crate) fn finish(mut self) -> Answer {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().unwrap() {
            body.extend(piece);
        }
        Answer {
            status: self.status,
            headers: self.headers,
            body,
        }
    }

    /// The connection itself, after a change of protocol.
    pub(crate) fn into_connection(self) -> BufReader<UnixStream> {
        self.connection
    }
}

/// The bytes of a request with these headers and this body.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: sandbox\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = body {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    [text.as_bytes(), b"\r\n", body.unwrap_or_default()].concat()
}

/// A text as it stands in a query.
pub(crate) fn encode(text: impl AsRef<[u8]>) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = text.as_ref().iter();
    bytes
        .map(|byte| {
            if plain(byte) {
                char::from(*byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
