//! Reads a page of a text file, or a whole binary one.

use std::fs::File;
use std::path::{Path, PathBuf};

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::execd::fs::{Content, Encoding, READ_BYTES_MAX};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::page::{Cut, Page};
use super::refusal::{of_fault, refused};
use super::resolve::{regular, shown};
use crate::fault::Fault;
use crate::files::download::{Content as Held, block, open_file};
use crate::files::work::Stop;

/// How much of a file is looked at to tell text from anything else, in bytes.
const PROBE_BYTES: usize = 8192;
/// Up to this size the lines of a file are counted, in bytes.
const COUNT_BYTES_MAX: u64 = 1024 * 1024;
/// Names of files that are never text, whatever their bytes.
const BINARY: [&str; 26] = [
    "png", "jpeg", "jpg", "webp", "gif", "heic", "heif", "mp4", "mpeg", "mov", "avi", "flv", "mpg",
    "webm", "wmv", "3gpp", "mkv", "wav", "mp3", "aiff", "aac", "ogg", "flac", "pdf", "ppt", "pptx",
];

/// What is to be read.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The file.
    pub(crate) path: PathBuf,
    /// Lines to pass over.
    pub(crate) offset: u64,
    /// Most lines.
    pub(crate) limit: u64,
    /// Most bytes of text.
    pub(crate) bytes_max: usize,
}

/// A file that is open and may be large.
#[derive(Debug)]
pub(crate) struct Begun {
    order: Order,
    held: Held,
}

impl Begun {
    /// Opens the file.
    ///
    /// # Errors
    /// When it does not exist, is no regular file, or may not be read.
    pub(crate) fn open(order: Order) -> Result<Self, Refusal> {
        regular(&order.path, "read")?;
        let held = open_file(&order.path).map_err(of_fault)?.content;
        Ok(Self { order, held })
    }

    /// Whether all of it is in memory already.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self.held, Held::Whole(_))
    }

    /// Reads it.
    ///
    /// # Errors
    /// When there are fewer lines, or a binary file is too large.
    pub(crate) fn read(self, stop: &Stop) -> Result<Content, Refusal> {
        let order = &self.order;
        let mut source = Source::new(self.held, stop);
        let first = source.next().map_err(of_fault)?;
        if first.is_empty() {
            return Ok(Content {
                total_lines: Some(0),
                ..Content::default()
            });
        }
        if has_binary_name(&order.path) || !may_be_text(&first) {
            return binary(&order.path, first, source);
        }
        if order.limit == 0 {
            return Ok(Content::default());
        }
        let mut page = Page::new(order.offset, order.limit, order.bytes_max);
        let mut bytes = first;
        let at_end = loop {
            if bytes.is_empty() {
                break true;
            }
            page.feed(&bytes);
            if page.is_settled() && !source.is_counted() {
                break false;
            }
            bytes = source.next().map_err(of_fault)?;
        };
        page.finish(at_end)
            .map(|cut| text(order, cut))
            .map_err(|lines| Refusal {
                count: Some(lines),
                ..refused(
                    Code::OffsetBeyondEnd,
                    format!(
                        "{} has {lines} lines, so none behind {}",
                        shown(&order.path),
                        order.offset
                    ),
                )
            })
    }
}

/// A file, block by block.
struct Source<'a> {
    head: Option<Bytes>,
    file: Option<File>,
    size: u64,
    read: u64,
    stop: &'a Stop,
}

impl<'a> Source<'a> {
    fn new(held: Held, stop: &'a Stop) -> Self {
        let (head, file, size) = match held {
            Held::Whole(bytes) => (Some(bytes), None, 0),
            Held::Sized(file, size) => (None, Some(file), size),
            Held::Endless(head, file) => (Some(head), Some(file), 0),
        };
        Self {
            head,
            file,
            size,
            read: 0,
            stop,
        }
    }

    /// The next block; empty at the end.
    fn next(&mut self) -> Result<Bytes, Fault> {
        let bytes = match (self.head.take(), &mut self.file) {
            (Some(head), _) => head,
            (None, Some(file)) if !self.stop.now() => block(file, u64::MAX)?,
            (None, Some(_)) => {
                let message = "reading took too long; ask for lines nearer to the start";
                return Err(Fault::new(crate::fault::Kind::Failed, message));
            }
            (None, None) => Bytes::new(),
        };
        self.read += bytes.len() as u64;
        Ok(bytes)
    }

    /// Whether the file is short enough for its lines to be counted.
    fn is_counted(&self) -> bool {
        self.size.max(self.read) <= COUNT_BYTES_MAX
    }
}

fn text(order: &Order, cut: Cut) -> Content {
    let content = String::from_utf8(cut.text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Content {
        encoding: Encoding::Utf8,
        content,
        start_line: Some(order.offset + 1),
        end_line: Some(order.offset + cut.lines),
        total_lines: cut.total,
        next_offset: cut.next,
        truncated: cut.cut,
        final_newline: cut.final_newline,
    }
}

fn binary(path: &Path, first: Bytes, mut source: Source<'_>) -> Result<Content, Refusal> {
    let mut all = Vec::from(first);
    loop {
        if all.len() > READ_BYTES_MAX || source.size > READ_BYTES_MAX as u64 {
            let message = format!(
                "{} is binary and larger than {READ_BYTES_MAX} bytes; download it instead",
                shown(path)
            );
            return Err(refused(Code::TooLarge, message));
        }
        let more = source.next().map_err(of_fault)?;
        if more.is_empty() {
            break;
        }
        all.extend_from_slice(&more);
    }
    Ok(Content {
        encoding: Encoding::Base64,
        content: STANDARD.encode(all),
        ..Content::default()
    })
}

fn has_binary_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|it| BINARY.iter().any(|known| it.eq_ignore_ascii_case(known)))
}

/// Whether the start of a file is UTF-8; a character that the probe cuts in two does not count.
fn may_be_text(start: &[u8]) -> bool {
    let probe = start.get(..PROBE_BYTES).unwrap_or(start);
    std::str::from_utf8(probe).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_tell_binary_files() {
        for (name, binary) in [
            ("a.png", true),
            ("a.PDF", true),
            ("a.b.MkV", true),
            ("png", false),
            (".png", false),
            ("a.txt", false),
            ("a.svg", false),
        ] {
            assert_eq!(has_binary_name(Path::new(name)), binary, "{name}");
        }
        let straddling = ["a".repeat(8190), "가나다".to_owned()].concat();
        assert!(may_be_text(straddling.as_bytes()));
        assert!(may_be_text(b"a\0b"));
        assert!(!may_be_text(b"caf\xe9 au lait"));
    }
}
