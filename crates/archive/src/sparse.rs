//! Files with holes: which parts hold data, and how a GNU archive tells it.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use tar::{GnuExtSparseHeader, Header};

use crate::frames::{BLOCK, Broken, FrameError, fill};

/// Most parts of one file. A file of more is taken as one without holes.
pub(crate) const SEGMENTS_MAX: usize = 16 * 1024;

/// Offset and length of each part with data; `None` for a file that is better taken whole.
pub(crate) fn segments(file: &File, size: u64) -> Option<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.min(size),
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => break,
            Err(_) => return None,
        };
        let end = seek(file, SeekFrom::Hole(start)).ok()?.min(size);
        if end <= start || all.len() >= SEGMENTS_MAX {
            return None;
        }
        all.push((start, end - start));
        at = end;
    }
    Some(all)
}

/// Writes the parts into a header, and the blocks that must follow it.
pub(crate) fn write(header: &mut Header, segments: &[(u64, u64)], size: u64) -> Vec<u8> {
    // An empty part at the end tells where the file ends.
    let mut all = segments.iter().copied().chain([(size, 0)]);
    let mut blocks = Vec::new();
    let Some(gnu) = header.as_gnu_mut() else {
        return blocks;
    };
    number(&mut gnu.realsize, size);
    for (slot, (offset, length)) in gnu.sparse.iter_mut().zip(&mut all) {
        number(&mut slot.offset, offset);
        number(&mut slot.numbytes, length);
    }
    let mut rest = all.peekable();
    gnu.isextended = [u8::from(rest.peek().is_some())];
    while rest.peek().is_some() {
        let mut block = GnuExtSparseHeader::new();
        for (slot, (offset, length)) in block.sparse.iter_mut().zip(&mut rest) {
            number(&mut slot.offset, offset);
            number(&mut slot.numbytes, length);
        }
        block.isextended = [u8::from(rest.peek().is_some())];
        blocks.extend_from_slice(block.as_bytes());
    }
    blocks
}

/// Reads the parts from a header and the blocks behind it, and the size of the file.
pub(crate) fn read(
    header: &Header,
    stored: u64,
    input: &mut impl Read,
) -> Result<(Vec<(u64, u64)>, u64), FrameError> {
    let gnu = header.as_gnu().ok_or(ODD)?;
    let size = gnu.real_size().map_err(|_| ODD)?;
    let mut all = Vec::new();
    let mut take = |slot: &tar::GnuSparseHeader| -> Result<(), Broken> {
        if slot.is_empty() {
            return Ok(());
        }
        let number = |field: io::Result<u64>| field.map_err(|_| ODD);
        all.push((number(slot.offset())?, number(slot.length())?));
        if all.len() > SEGMENTS_MAX + 1 {
            return Err(Broken("a sparse file in the archive has too many parts"));
        }
        Ok(())
    };
    gnu.sparse.iter().try_for_each(&mut take)?;
    let mut is_extended = gnu.is_extended();
    while is_extended {
        let mut block = GnuExtSparseHeader::new();
        fill(input, block.as_mut_bytes())?;
        block.sparse().iter().try_for_each(&mut take)?;
        is_extended = block.is_extended();
    }
    check(&all, size, stored)?;
    Ok((all, size))
}

/// Whether parts are in order, within the file, and as long as what is stored.
pub(crate) fn check(segments: &[(u64, u64)], size: u64, stored: u64) -> Result<(), Broken> {
    let mut end = 0_u64;
    let mut total = 0_u64;
    for (offset, length) in segments {
        if *offset < end {
            return Err(ODD);
        }
        end = offset
            .checked_add(*length)
            .filter(|end| *end <= size)
            .ok_or(ODD)?;
        total += length;
    }
    if total != stored {
        return Err(ODD);
    }
    Ok(())
}

/// How many lines there must be before the parts can be read.
pub(crate) fn lines_of(text: &[u8]) -> Result<usize, Broken> {
    let end = text.iter().position(|byte| *byte == b'\n').ok_or(ODD)?;
    let parts = decimal(text.get(..end).unwrap_or_default())?;
    if parts > SEGMENTS_MAX as u64 + 1 {
        return Err(Broken("a sparse file in the archive has too many parts"));
    }
    Ok(1 + 2 * parts as usize)
}

/// The parts as numbers in lines, behind one that says how many there are.
pub(crate) fn parse(text: &[u8], size: u64) -> Result<Vec<(u64, u64)>, Broken> {
    let count = lines_of(text)?;
    let mut lines = text.split(|byte| *byte == b'\n').take(count).skip(1);
    let mut all = Vec::new();
    while let Some(offset) = lines.next() {
        let (offset, length) = (decimal(offset)?, decimal(lines.next().ok_or(ODD)?)?);
        if offset > size {
            return Err(ODD);
        }
        all.push((offset, length));
    }
    Ok(all)
}

fn decimal(line: &[u8]) -> Result<u64, Broken> {
    let text = std::str::from_utf8(line).map_err(|_| ODD)?;
    text.parse().map_err(|_| ODD)
}

/// The parts as [`parse`] reads them, filled up to whole blocks.
pub(crate) fn lines(segments: &[(u64, u64)], size: u64) -> Vec<u8> {
    // An empty part at the end tells where the file ends.
    let all = segments.iter().copied().chain([(size, 0)]);
    let mut text = format!("{}\n", segments.len() + 1);
    for (offset, length) in all {
        text.push_str(&format!("{offset}\n{length}\n"));
    }
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

pub(crate) const ODD: Broken = Broken("a sparse file in the archive is damaged");

/// A number as headers hold it: octal digits, or binary with a mark where they do not suffice.
fn number(field: &mut [u8; 12], value: u64) {
    if value < 1 << 33 {
        let digits = format!("{value:011o}\0");
        field.copy_from_slice(digits.as_bytes());
    } else {
        *field = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (place, byte) in field.iter_mut().skip(4).zip(value.to_be_bytes()) {
            *place = byte;
        }
    }
}
