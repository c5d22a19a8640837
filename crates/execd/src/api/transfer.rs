//! Downloads: content in blocks, never held whole.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_wire::header::{FILE_MODE, FILE_MODIFIED};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, ETAG, HeaderName, HeaderValue,
    LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use tokio::sync::mpsc;

use super::answer::{Answer, Body, done, fault, typed};
use super::conditions::{Verdict, etag, judge, last_modified};
use super::query::Query;
use crate::fault::{Fault, Kind};
use crate::files::digest;
use crate::files::download::{Content, Opened, Stamp, block, open_file, seek};
use crate::files::identity::Identity;
use crate::files::line_window::LineWindow;
use crate::files::range::{Wanted, parse};
use crate::files::work::{Weight, begin, run};

/// `GET /x/files`: a download that tells mode and time, and the digest if asked for.
pub(super) async fn download_with_details(
    who: Option<Identity>,
    path: PathBuf,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, Fault> {
    let opened = open(who, &path).await?;
    let stamp = opened.stamp;
    let (opened, digest) = match query.flag("sha256") {
        false => (opened, None),
        true => {
            let work = move || digest::of(&opened.content).map(|found| (opened, Some(found)));
            run(who, Weight::Heavy, work).await?
        }
    };
    let mut answer = serve(opened, &path, query, headers)?;
    let headers = answer.headers_mut();
    if let Some(digest) = digest {
        let text = format!("sha-256=:{}:", BASE64_STANDARD.encode(digest));
        insert(headers, HeaderName::from_static("repr-digest"), &text);
    }
    if let Some(stamp) = stamp {
        let mode = format!("{:o}", stamp.mode);
        insert(headers, HeaderName::from_static(FILE_MODE), &mode);
        let (seconds, nanoseconds) = stamp.modified;
        if let Ok(time) = Timestamp::new(seconds, nanoseconds as i32) {
            let time = time.to_string();
            insert(headers, HeaderName::from_static(FILE_MODIFIED), &time);
        }
    }
    Ok(answer)
}

async fn open(who: Option<Identity>, path: &Path) -> Result<Opened, Fault> {
    let path = path.to_owned();
    run(who, Weight::Light, move || open_file(&path)).await
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// `GET /files/download`
pub(super) async fn download(
    who: Option<Identity>,
    path: PathBuf,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Answer, Fault> {
    serve(open(who, &path).await?, &path, query, headers)
}

/// The part of a file that a request asks for.
fn serve(opened: Opened, path: &Path, query: &Query, headers: &HeaderMap) -> Result<Answer, Fault> {
    let lines = (query.number("offset")?, query.number("limit")?);
    let name = disposition(path);
    let (content, stamp) = (opened.content, opened.stamp);
    let verdict = stamp.map_or(Verdict::Serve { ranged: true }, |it| judge(headers, &it));
    let ranged = match verdict {
        Verdict::Serve { ranged } => ranged,
        Verdict::NotModified => return Ok(without_content(StatusCode::NOT_MODIFIED, stamp)),
        Verdict::Failed => {
            let message = "the file is not what the condition names; look at it again";
            return Err(Fault::new(Kind::Changed, message));
        }
    };
    let range = headers
        .get(RANGE)
        .filter(|_| ranged || lines != (None, None));
    let mut answer = match (lines, range) {
        ((None, None), None) => whole(content),
        ((None, None), Some(range)) => part(content, range)?,
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
        ((first, limit), None) => cut(content, LineWindow::new(first.unwrap_or(1), limit)),
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_DISPOSITION, name);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    stamp_on(headers, stamp);
    Ok(answer)
}

/// Tells the state of the file.
fn stamp_on(headers: &mut HeaderMap, stamp: Option<Stamp>) {
    let Some(stamp) = stamp else {
        return;
    };
    insert(headers, ETAG, &etag(&stamp));
    if let Some(time) = last_modified(&stamp) {
        insert(headers, LAST_MODIFIED, &time);
    }
}

fn without_content(status: StatusCode, stamp: Option<Stamp>) -> Answer {
    let mut answer = done();
    *answer.status_mut() = status;
    stamp_on(answer.headers_mut(), stamp);
    answer
}

const BINARY: &str = "application/octet-stream";

fn whole(content: Content) -> Answer {
    let body = match content {
        Content::Whole(bytes) => Body::Whole(bytes),
        Content::Sized(file, size) => Body::Sized(pieces(None, file, size), size),
        Content::Endless(head, file) => Body::Stream(pieces(Some(head), file, u64::MAX)),
    };
    typed(BINARY, body)
}

fn part(content: Content, range: &HeaderValue) -> Result<Answer, Fault> {
    let size = match &content {
        Content::Whole(bytes) => bytes.len() as u64,
        Content::Sized(_, size) => *size,
        Content::Endless(..) => 0,
    };
    let header = range.to_str().unwrap_or_default();
    let (start, len) = match parse(header, size) {
        Wanted::Whole => return Ok(whole(content)),
        Wanted::Part { start, len } => (start, len),
        Wanted::Nothing => {
            let message = format!("the range {header:?} is not in a file of {size} bytes");
            let mut answer = fault(&Fault::new(Kind::BadRange, message));
            let told = format!("bytes */{size}");
            insert(answer.headers_mut(), CONTENT_RANGE, &told);
            return Ok(answer);
        }
    };
    let body = match content {
        Content::Whole(bytes) => Body::Whole(bytes.slice(start as usize..(start + len) as usize)),
        Content::Sized(mut file, _) | Content::Endless(_, mut file) => {
            seek(&mut file, start)?;
            Body::Sized(pieces(None, file, len), len)
        }
    };
    let mut answer = typed(BINARY, body);
    *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    let last = start + len - 1;
    let told = format!("bytes {start}-{last}/{size}");
    insert(answer.headers_mut(), CONTENT_RANGE, &told);
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
fn cut(content: Content, mut window: LineWindow) -> Answer {
    const TEXT: &str = "text/plain; charset=utf-8";
    let mut source = match content {
        Content::Whole(bytes) => {
            let range = window.cut(&bytes);
            return typed(TEXT, Body::Whole(bytes.slice(range)));
        }
        Content::Sized(file, _) => pieces(None, file, u64::MAX),
        Content::Endless(head, file) => pieces(Some(head), file, u64::MAX),
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
