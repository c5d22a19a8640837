//! Moves file content: uploads and downloads, in blocks, never held whole.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE,
};
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tokio::sync::mpsc;

use super::answer::{Answer, Body, done, typed};
use super::body;
use super::query::Query;
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::files::download::{Opened, block, open_file, seek};
use crate::files::identity::Identity;
use crate::files::line_window::LineWindow;
use crate::files::multipart::{Broken, Parser, Piece};
use crate::files::range::{Wanted, parse};
use crate::files::upload::Upload;
use crate::files::work::{Begun, Weight, begin, run};
use crate::limits::{BLOCK_BYTES, INLINE_BYTES_MAX};

/// `POST /files/upload`
pub(super) async fn upload(
    app: &Rc<App>,
    who: Option<Identity>,
    request: Request<Incoming>,
) -> Result<Answer, Fault> {
    let content_type = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|it| it.to_str().ok());
    let parser = Parser::new(content_type.unwrap_or_default());
    let mut body = request.into_body();
    let upload = Upload::new(app.cwd.clone(), app.environment.now());
    let received = match parser {
        Ok(parser) => receive(parser, &mut body, Writer::new(who, upload)).await,
        Err(broken) => Err(refused(broken)),
    };
    if received.is_err() {
        // Many callers look at the answer only after they have sent everything.
        body::drain(&mut body).await;
    }
    received.map(|()| done())
}

async fn receive(mut parser: Parser, body: &mut Incoming, mut writer: Writer) -> Result<(), Fault> {
    while let Some(bytes) = body::next(body).await? {
        parser.feed(bytes);
        while let Some(piece) = parser.next().map_err(refused)? {
            writer.take(piece).await?;
        }
    }
    parser.finish().map_err(refused)?;
    writer.finish().await
}

fn refused(broken: Broken) -> Fault {
    Fault::new(
        Kind::BadContent,
        format!("the upload is broken: {}", broken.0),
    )
}

/// Writes an upload while its next block arrives. What is small is written at once; a large one is
/// handed to a thread block by block, so that a slow disk does not stop the daemon, nor a slow
/// caller keep a thread.
struct Writer {
    who: Option<Identity>,
    upload: Option<Upload>,
    begun: Option<Begun<Upload>>,
    batch: Vec<Piece>,
    batch_bytes: usize,
    /// Whether what comes is small enough so far to be written at once.
    inline: bool,
    inline_bytes: u64,
}

impl Writer {
    fn new(who: Option<Identity>, upload: Upload) -> Self {
        Self {
            who,
            upload: Some(upload),
            begun: None,
            batch: Vec::new(),
            batch_bytes: 0,
            inline: who.is_none(),
            inline_bytes: 0,
        }
    }

    async fn take(&mut self, piece: Piece) -> Result<(), Fault> {
        let len = match &piece {
            Piece::Data(data) => data.len(),
            _ => 0,
        };
        self.inline_bytes += len as u64;
        self.inline &= self.inline_bytes <= INLINE_BYTES_MAX;
        if self.inline {
            return match &mut self.upload {
                Some(upload) => upload.take(piece),
                None => Err(broken_off()),
            };
        }
        self.batch.push(piece);
        self.batch_bytes += len;
        if self.batch_bytes >= BLOCK_BYTES || self.batch.len() >= 1024 {
            self.flush().await?;
        }
        Ok(())
    }

    /// Waits for the block before, and begins this one.
    async fn flush(&mut self) -> Result<(), Fault> {
        let mut upload = self.settle().await?;
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        self.begun = Some(begin(self.who, move || {
            batch.into_iter().try_for_each(|piece| upload.take(piece))?;
            Ok(upload)
        }));
        Ok(())
    }

    async fn settle(&mut self) -> Result<Upload, Fault> {
        match self.begun.take() {
            Some(begun) => begun.end().await,
            None => self.upload.take().ok_or_else(broken_off),
        }
    }

    async fn finish(mut self) -> Result<(), Fault> {
        if !self.batch.is_empty() {
            self.flush().await?;
        }
        let weight = if self.begun.is_some() {
            Weight::Heavy
        } else {
            Weight::Light
        };
        let upload = self.settle().await?;
        run(self.who, weight, move || upload.finish()).await
    }
}

fn broken_off() -> Fault {
    Fault::new(Kind::Failed, "the upload broke off")
}

/// `GET /files/download`
pub(super) async fn download(
    who: Option<Identity>,
    path: PathBuf,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, Fault> {
    let range = headers
        .get(RANGE)
        .filter(|_| !headers.contains_key(IF_RANGE));
    let lines = (query.number("offset")?, query.number("limit")?);
    let name = disposition(&path);
    let opened = run(who, Weight::Light, move || open_file(&path)).await?;
    let mut answer = match (lines, range) {
        ((None, None), None) => whole(opened),
        ((None, None), Some(range)) => part(opened, range)?,
        (_, Some(_)) => {
            let message = "`offset` and `limit` count lines and do not go with a Range header";
            return Err(Fault::new(Kind::BadRequest, message));
        }
        ((Some(0), _), None) => {
            return Err(Fault::new(
                Kind::BadRequest,
                "`offset` is a line, counted from 1",
            ));
        }
        ((first, limit), None) => cut(opened, LineWindow::new(first.unwrap_or(1), limit)),
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_DISPOSITION, name);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    Ok(answer)
}

const BINARY: &str = "application/octet-stream";

fn whole(opened: Opened) -> Answer {
    let body = match opened {
        Opened::Whole(bytes) => Body::Whole(bytes),
        Opened::Sized(file, size) => Body::Sized(pieces(None, file, size), size),
        Opened::Endless(head, file) => Body::Stream(pieces(Some(head), file, u64::MAX)),
    };
    typed(BINARY, body)
}

fn part(opened: Opened, range: &HeaderValue) -> Result<Answer, Fault> {
    let size = match &opened {
        Opened::Whole(bytes) => bytes.len() as u64,
        Opened::Sized(_, size) => *size,
        Opened::Endless(..) => 0,
    };
    let header = range.to_str().unwrap_or_default();
    let (start, len) = match parse(header, size) {
        Wanted::Whole => return Ok(whole(opened)),
        Wanted::Part { start, len } => (start, len),
        Wanted::Nothing => {
            let message = format!("the range {header:?} is not in a file of {size} bytes");
            return Err(Fault::new(Kind::BadRange, message));
        }
    };
    let body = match opened {
        Opened::Whole(bytes) => Body::Whole(bytes.slice(start as usize..(start + len) as usize)),
        Opened::Sized(mut file, _) | Opened::Endless(_, mut file) => {
            seek(&mut file, start)?;
            Body::Sized(pieces(None, file, len), len)
        }
    };
    let mut answer = typed(BINARY, body);
    *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    let last = start + len - 1;
    if let Ok(value) = HeaderValue::from_str(&format!("bytes {start}-{last}/{size}")) {
        answer.headers_mut().insert(CONTENT_RANGE, value);
    }
    Ok(answer)
}

/// Reads a file block by block, the next one while the caller takes the last, and stops when the
/// caller goes.
fn pieces(head: Option<Bytes>, mut file: File, bytes_max: u64) -> mpsc::Receiver<Bytes> {
    let (out, pieces) = mpsc::channel(1);
    tokio::task::spawn_local(async move {
        let mut left = bytes_max;
        if let Some(head) = head
            && out.send(head).await.is_err()
        {
            return;
        }
        while left > 0 {
            let read = begin(None, move || {
                block(&mut file, left).map(|bytes| (bytes, file))
            });
            let Ok((bytes, same)) = read.end().await else {
                return;
            };
            file = same;
            left -= bytes.len() as u64;
            if bytes.is_empty() || out.send(bytes).await.is_err() {
                return;
            }
        }
    });
    pieces
}

/// Some lines of a file.
fn cut(opened: Opened, mut window: LineWindow) -> Answer {
    const TEXT: &str = "text/plain; charset=utf-8";
    let mut source = match opened {
        Opened::Whole(bytes) => {
            let range = window.cut(&bytes);
            return typed(TEXT, Body::Whole(bytes.slice(range)));
        }
        Opened::Sized(file, _) => pieces(None, file, u64::MAX),
        Opened::Endless(head, file) => pieces(Some(head), file, u64::MAX),
    };
    let (out, pieces) = mpsc::channel(1);
    tokio::task::spawn_local(async move {
        while !window.is_over()
            && let Some(bytes) = source.recv().await
        {
            let range = window.cut(&bytes);
            if !range.is_empty() && out.send(bytes.slice(range)).await.is_err() {
                return;
            }
        }
    });
    typed(TEXT, Body::Stream(pieces))
}

/// Characters that may stand in the encoded form of a file name.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// The name under which a file is to be saved, in a form that every client reads.
fn disposition(path: &Path) -> HeaderValue {
    let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let text = if name.iter().all(plain) {
        format!("attachment; filename=\"{}\"", String::from_utf8_lossy(name))
    } else {
        format!(
            "attachment; filename*=UTF-8''{}",
            percent_encode(name, PLAIN)
        )
    };
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_in_a_form_that_headers_can_carry() {
        for (path, wanted) in [
            ("/a/b c.txt", r#"attachment; filename="b c.txt""#),
            ("/a/文.txt", "attachment; filename*=UTF-8''%E6%96%87.txt"),
            ("/a/q\"\\\n", "attachment; filename*=UTF-8''q%22%5C%0A"),
        ] {
            assert_eq!(disposition(Path::new(path)), wanted);
        }
    }
}
