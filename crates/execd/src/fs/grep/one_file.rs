//! Searches one file after another, with memory that is kept between them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use barchan_wire::execd::fs::search::{Count, GrepMode, Match, Skipped};
use grep_matcher::Matcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::Order;
use super::board::Stopping;
use super::shown;
use crate::fault::text;
use crate::limits::{FOUND_BYTES_MAX, MATCH_BYTES_MAX, SEARCHED_LINE_BYTES_MAX};

/// Up to this size a file is searched in one piece, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;
/// What is shown of a long line before its match, in bytes.
const BEFORE_BYTES: usize = 256;
/// What a match costs beside its text and path.
const MATCH_BYTES: usize = 64;
/// Between two looks at the clock, in lines that match.
const LOOK: u64 = 1024;

/// What one file held.
#[derive(Debug)]
pub(super) struct Hits {
    pub(super) lines: Vec<Match>,
    pub(super) count: Count,
    pub(super) bytes: usize,
    pub(super) skipped: Option<Skipped>,
}

/// Searches files.
pub(super) struct OneFile<'a> {
    order: &'a Order,
    stopping: &'a Stopping<'a>,
    searcher: Searcher,
    buffer: Vec<u8>,
    named: bool,
}

impl<'a> OneFile<'a> {
    /// `named` are files that the caller asked for: through links, and binary ones too.
    pub(super) fn new(order: &'a Order, stopping: &'a Stopping<'a>, named: bool) -> Self {
        let binary = if named {
            BinaryDetection::none()
        } else {
            BinaryDetection::quit(0)
        };
        let searcher = SearcherBuilder::new()
            .binary_detection(binary)
            .bom_sniffing(false)
            .line_number(order.mode == GrepMode::Matches)
            .heap_limit(Some(SEARCHED_LINE_BYTES_MAX))
            .build();
        Self {
            order,
            stopping,
            searcher,
            buffer: vec![0; BUFFER_BYTES],
            named,
        }
    }

    /// Searches a file; `None` when there is nothing to say about it.
    pub(super) fn search(&mut self, path: &Path) -> Option<Hits> {
        let mut hits = Hits {
            lines: Vec::new(),
            count: Count {
                path: String::new(),
                count: 0,
            },
            bytes: 0,
            skipped: None,
        };
        let outcome = self.look(path, &mut hits);
        if hits.count.count > 0 && hits.count.path.is_empty() {
            hits.count.path = shown(path);
        }
        if let Err(error) = outcome {
            let errno = Errno::from_io_error(&error);
            // Gone, or a link by now.
            if !matches!(errno, Some(Errno::NOENT | Errno::LOOP)) {
                let reason = errno.map_or_else(|| error.to_string(), text);
                let path = shown(path);
                hits.skipped = Some(Skipped { path, reason });
            }
        }
        (hits.count.count > 0 || hits.skipped.is_some()).then_some(hits)
    }

    fn look(&mut self, path: &Path, hits: &mut Hits) -> io::Result<()> {
        let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if !self.named {
            flags |= OFlags::NOFOLLOW;
        }
        let mut file = File::from(open(path, flags, Mode::empty())?);
        let mut filled = 0;
        while let Some(room) = self
            .buffer
            .get_mut(filled..)
            .filter(|room| !room.is_empty())
        {
            match file.read(room)? {
                0 => break,
                more => filled += more,
            }
        }
        let matcher = &self.order.matcher;
        let start = self.buffer.get(..filled).unwrap_or_default();
        let taker = Taker {
            order: self.order,
            stopping: self.stopping,
            path,
            hits,
        };
        if filled < BUFFER_BYTES {
            return self.searcher.search_slice(matcher, start, taker);
        }
        let rest = Bounded {
            file,
            stopping: self.stopping,
        };
        self.searcher
            .search_reader(matcher, start.chain(rest), taker)
    }
}

/// A file that ends when time is over, however much is written to it meanwhile.
struct Bounded<'a> {
    file: File,
    stopping: &'a Stopping<'a>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.stopping.now() {
            return Ok(0);
        }
        self.file.read(room)
    }
}

/// Takes lines that match.
struct Taker<'a> {
    order: &'a Order,
    stopping: &'a Stopping<'a>,
    path: &'a Path,
    hits: &'a mut Hits,
}

impl Sink for Taker<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let hits = &mut *self.hits;
        hits.count.count += 1;
        if hits.count.path.is_empty() {
            hits.count.path = shown(self.path);
            hits.bytes += hits.count.path.len() + MATCH_BYTES;
        }
        let go_on = !hits.count.count.is_multiple_of(LOOK) || !self.stopping.now();
        match self.order.mode {
            GrepMode::Files => Ok(false),
            GrepMode::Counts => Ok(go_on),
            GrepMode::Matches => {
                let (text, cut) = line(&self.order.matcher, found.bytes());
                let path = hits.count.path.clone();
                hits.bytes += text.len() + path.len() + MATCH_BYTES;
                hits.lines.push(Match {
                    path,
                    line: found.line_number().unwrap_or_default(),
                    text,
                    cut,
                });
                // One more than wanted tells that there are more.
                let enough = hits.lines.len() as u64 > self.order.count_max;
                Ok(go_on && !enough && hits.bytes <= FOUND_BYTES_MAX)
            }
        }
    }
}

/// A line without its end, and whether only a part of it is shown.
fn line(matcher: &impl Matcher, bytes: &[u8]) -> (String, bool) {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MATCH_BYTES_MAX {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let at = matcher.find(line).ok().flatten();
    let from = at.map_or(0, |at| at.start().saturating_sub(BEFORE_BYTES));
    let to = line.len().min(from + MATCH_BYTES_MAX);
    let part = line.get(from..to).unwrap_or_default();
    (String::from_utf8_lossy(part).into_owned(), true)
}
