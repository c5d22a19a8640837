//! Compares what files hold.

use std::os::fd::OwnedFd;

use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::{Errno, pread};

use super::budget::{Budget, Stop};
use super::change::TextCut;
use super::unified::{Bounds, Unified, unified};

/// What is read at a time of files that are not compared as text, in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// How much of a large file is looked at to tell whether it is text, in bytes.
const HEAD_BYTES: usize = 8 * 1024;

/// What is told of two contents.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) diff: Option<String>,
    pub(super) cut: Option<TextCut>,
    pub(super) is_binary: bool,
}

/// Reads files of both views.
#[derive(Debug, Default)]
pub(super) struct Reader {
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Reader {
    /// Compares two files, or tells what one holds. `None` if both hold the same.
    pub(super) fn compare(
        &mut self,
        path: &[u8],
        files: [Option<&OwnedFd>; 2],
        budget: &mut Budget<'_>,
    ) -> Result<Option<Text>, Stop> {
        let [old, new] = files;
        let sizes = [size(old)?, size(new)?];
        let limits = budget.limits;
        let has_room = budget.diffs_left() > 0;
        let is_small = sizes
            .iter()
            .all(|size| *size <= limits.text_bytes_max as u64);
        if let (Some(old), Some(new)) = (old, new)
            && sizes[0] == sizes[1]
            && !(has_room && is_small)
            && self.is_same(old, new, sizes[0], budget)?
        {
            return Ok(None);
        }
        if !has_room {
            let cut = (limits.diffs_bytes_max > 0).then_some(TextCut::Diffs);
            return Ok(Some(Text {
                cut,
                ..Text::default()
            }));
        }
        if !is_small {
            return self.sniff(files, budget).map(Some);
        }
        for (file, size, buffer) in [
            (old, sizes[0], &mut self.old),
            (new, sizes[1], &mut self.new),
        ] {
            load(file, size as usize, buffer, budget)?;
        }
        if old.is_some() && new.is_some() && self.old == self.new {
            return Ok(None);
        }
        Ok(Some(self.text(
            path,
            files.map(|file| file.is_some()),
            budget,
        )))
    }

    /// Whether two files of the same size hold the same. What is a hole in both is not read.
    fn is_same(
        &mut self,
        old: &OwnedFd,
        new: &OwnedFd,
        size: u64,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Stop> {
        let mut at = 0;
        loop {
            at = next_data(old, at, size).min(next_data(new, at, size));
            if at >= size {
                return Ok(true);
            }
            let most = (size - at).min(PIECE_BYTES as u64) as usize;
            budget.read(2 * most)?;
            fill(old, at, most, &mut self.old)?;
            fill(new, at, most, &mut self.new)?;
            if self.old != self.new {
                return Ok(false);
            }
            at += most as u64;
        }
    }

    /// Tells of files that are too large whether they look like text.
    fn sniff(
        &mut self,
        files: [Option<&OwnedFd>; 2],
        budget: &mut Budget<'_>,
    ) -> Result<Text, Stop> {
        let mut is_text = true;
        for file in files.into_iter().flatten() {
            load(Some(file), HEAD_BYTES, &mut self.old, budget)?;
            is_text &= begins_as_text(&self.old);
        }
        Ok(Text {
            cut: is_text.then_some(TextCut::Size),
            is_binary: !is_text,
            diff: None,
        })
    }

    fn text(&self, path: &[u8], is_there: [bool; 2], budget: &Budget<'_>) -> Text {
        let (Some(old), Some(new)) = (as_text(&self.old), as_text(&self.new)) else {
            return Text {
                is_binary: true,
                ..Text::default()
            };
        };
        let (limits, left) = (budget.limits, budget.diffs_left());
        let bounds = Bounds {
            bytes_max: limits.diff_bytes_max.min(left),
            lines_max: limits.text_lines_max,
            time: budget.text_time(),
        };
        let texts = [is_there[0].then_some(old), is_there[1].then_some(new)];
        let (diff, cut) = match unified(path, texts, bounds) {
            Unified::Whole(diff) => (diff, None),
            Unified::Part(diff) if left < limits.diff_bytes_max => (diff, Some(TextCut::Diffs)),
            Unified::Part(diff) => (diff, Some(TextCut::Diff)),
            Unified::TooManyLines => (String::new(), Some(TextCut::Lines)),
        };
        Text {
            diff: Some(diff).filter(|diff| !diff.is_empty()),
            cut,
            is_binary: false,
        }
    }
}

fn size(file: Option<&OwnedFd>) -> Result<u64, Errno> {
    let Some(file) = file else { return Ok(0) };
    Ok(fstat(file)?.st_size.unsigned_abs())
}

/// Where the next data is from here on; at the end if there is none.
fn next_data(file: &OwnedFd, at: u64, size: u64) -> u64 {
    match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start.min(size),
        Err(Errno::NXIO) => size,
        // A file system that knows no holes.
        Err(_) => at,
    }
}

/// Reads the beginning of a file; of none, nothing.
fn load(
    file: Option<&OwnedFd>,
    most: usize,
    buffer: &mut Vec<u8>,
    budget: &mut Budget<'_>,
) -> Result<(), Stop> {
    buffer.clear();
    let Some(file) = file else { return Ok(()) };
    budget.read(most)?;
    Ok(fill(file, 0, most, buffer)?)
}

/// Reads so many bytes, or up to the end.
fn fill(file: &OwnedFd, at: u64, most: usize, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.resize(most, 0);
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match pread(file, rest, at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    buffer.truncate(filled);
    Ok(())
}

fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Whether it can be the beginning of a text, which may be cut within a character.
fn begins_as_text(bytes: &[u8]) -> bool {
    let is_valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_valid && !bytes.contains(&0)
}
