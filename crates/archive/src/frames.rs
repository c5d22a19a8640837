//! The frames of a tar stream: headers, the longer names and sizes that stand before them, and
//! content of exactly the size that is told.
//!
//! Only fields are read by the library. It holds extended headers whole in memory, however long
//! they claim to be; here each has a limit.

use std::io::{self, Read};

use tar::{EntryType, Header};

use crate::sparse;

pub(crate) mod extended;

use extended::Extended;
pub(crate) use extended::records;

/// Size of a header, and of what content is filled up to, in bytes.
pub(crate) const BLOCK: usize = 512;
/// Longest name, link target or extended header, in bytes.
const EXTENDED_BYTES_MAX: u64 = 64 * 1024;
/// Longest map of a sparse file as text: two numbers of 20 digits for each part.
const MAP_BYTES_MAX: usize = sparse::SEGMENTS_MAX * 2 * 21 + 2 * BLOCK;

const TOO_LONG: Broken = Broken("a name or header in the archive is too long");

/// An archive that does not follow the format, or ends in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub &'static str);

/// Why there is no next frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// One entry's head.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: EntryType,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    /// Seconds since 1970.
    pub(crate) modified: i64,
    /// Those beyond, in nanoseconds.
    pub(crate) nanoseconds: u32,
    /// Numbers of its owner and group.
    pub(crate) owner: (u64, u64),
    /// Extended attributes: names and values.
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of content that follow.
    pub(crate) stored: u64,
    /// Bytes of the file, with its holes.
    pub(crate) size: u64,
    /// Where the stored content belongs in the file, in order; `None` for one without holes.
    pub(crate) segments: Option<Vec<(u64, u64)>>,
}

/// A stream of frames.
pub(crate) struct Frames<R> {
    input: R,
    /// Content and filling of the last frame that have not been read.
    left: u64,
    filling: u64,
    /// Longest name, link target or extended header, in bytes.
    extended_max: u64,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            left: 0,
            filling: 0,
            extended_max: EXTENDED_BYTES_MAX,
        }
    }

    /// Takes longer extended headers: those with attributes.
    pub(crate) fn with_extended_max(self, extended_max: u64) -> Self {
        Self {
            extended_max,
            ..self
        }
    }

    /// What the stream was read from.
    pub(crate) fn into_input(self) -> R {
        self.input
    }

    /// The next entry, after whatever of the last one was not read; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let mut extended = Extended::default();
        let mut extended_bytes = 0_u64;
        loop {
            self.skip()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let stored = extended
                .size
                .map_or_else(|| number(header.entry_size()), Ok)?;
            match header.entry_type() {
                EntryType::GNULongName => extended.name = Some(self.text(stored)?),
                EntryType::GNULongLink => extended.link = Some(self.text(stored)?),
                EntryType::XHeader => {
                    extended_bytes = extended_bytes.saturating_add(stored);
                    if extended_bytes > self.extended_max {
                        return Err(TOO_LONG.into());
                    }
                    let records = self.extended(stored)?;
                    extended.take(&records)?;
                }
                EntryType::XGlobalHeader => {
                    let frame = Frame::new(&header, extended, stored)?;
                    self.begin(stored)?;
                    return Ok(Some(frame));
                }
                _ => return self.entry(&header, extended, stored).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        header: &Header,
        extended: Extended,
        stored: u64,
    ) -> Result<Frame, FrameError> {
        let sparse_size = extended.sparse_size()?;
        let mut frame = Frame::new(header, extended, stored)?;
        if frame.kind == EntryType::GNUSparse {
            let (segments, size) = sparse::read(header, stored, &mut self.input)?;
            frame.segments = Some(segments);
            frame.size = size;
        }
        // Links and directories have no content, whatever they claim.
        let has_content = matches!(
            frame.kind,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse
        );
        if !has_content {
            (frame.stored, frame.size) = (0, 0);
        }
        self.begin(frame.stored)?;
        if let (Some(size), EntryType::Regular) = (sparse_size, frame.kind) {
            let segments = self.map(size)?;
            (frame.stored, frame.size) = (self.left, size);
            frame.segments = Some(segments);
        }
        Ok(frame)
    }

    /// The parts of a sparse file, as they stand before its content in the PAX format.
    fn map(&mut self, size: u64) -> Result<Vec<(u64, u64)>, FrameError> {
        let (mut text, mut lines) = (Vec::new(), 0);
        loop {
            let mut block = [0; BLOCK];
            let mut filled = 0;
            while let Some(rest) = block.get_mut(filled..).filter(|it| !it.is_empty()) {
                match self.read(rest)? {
                    0 => return Err(sparse::ODD.into()),
                    taken => filled += taken,
                }
            }
            lines += block.iter().filter(|byte| **byte == b'\n').count();
            text.extend_from_slice(&block);
            if text.len() > MAP_BYTES_MAX {
                return Err(sparse::ODD.into());
            }
            if lines >= sparse::lines_of(&text)? {
                let segments = sparse::parse(&text, size)?;
                sparse::check(&segments, size, self.left)?;
                return Ok(segments);
            }
        }
    }

    /// Reads content of the last frame; nothing is left when it returns 0.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, FrameError> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(into.len());
        let Some(into) = into.get_mut(..most).filter(|it| !it.is_empty()) else {
            return Ok(0);
        };
        match self.input.read(into)? {
            0 => Err(Broken("the archive ends in the middle of a file").into()),
            taken => {
                self.left -= taken as u64;
                Ok(taken)
            }
        }
    }

    /// The content of the last frame as text, of limited length.
    pub(crate) fn extended(&mut self, stored: u64) -> Result<Vec<u8>, FrameError> {
        if stored > self.extended_max {
            return Err(TOO_LONG.into());
        }
        if self.left == 0 {
            self.begin(stored)?;
        }
        let mut all = vec![0; self.left as usize];
        let mut filled = 0;
        while let Some(rest) = all.get_mut(filled..).filter(|it| !it.is_empty()) {
            filled += self.read(rest)?;
        }
        Ok(all)
    }

    fn text(&mut self, stored: u64) -> Result<Vec<u8>, FrameError> {
        let mut text = self.extended(stored)?;
        let end = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        text.truncate(end);
        Ok(text)
    }

    fn begin(&mut self, stored: u64) -> Result<(), Broken> {
        let whole = stored.checked_next_multiple_of(BLOCK as u64);
        let whole = whole.ok_or(Broken("a size in the archive is too large"))?;
        (self.left, self.filling) = (stored, whole - stored);
        Ok(())
    }

    fn skip(&mut self) -> Result<(), FrameError> {
        let mut skipped = self.left + self.filling;
        (self.left, self.filling) = (0, 0);
        let mut scratch = [0; 8192];
        while skipped > 0 {
            let most = (scratch.len() as u64).min(skipped) as usize;
            match self
                .input
                .read(scratch.get_mut(..most).unwrap_or_default())?
            {
                0 => return Err(Broken("the archive ends in the middle of a file").into()),
                taken => skipped -= taken as u64,
            }
        }
        Ok(())
    }

    /// The next header; `None` at the end mark.
    fn header(&mut self) -> Result<Option<Header>, FrameError> {
        let mut header = Header::new_old();
        fill(&mut self.input, header.as_mut_bytes())?;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The sum counts its own field as blanks.
        let bytes = header.as_bytes().iter().enumerate();
        let sum: u32 = bytes
            .map(|(at, byte)| {
                if (148..156).contains(&at) {
                    32
                } else {
                    u32::from(*byte)
                }
            })
            .sum();
        if header.cksum().ok() != Some(sum) {
            return Err(Broken("this is no tar archive, or a damaged one").into());
        }
        Ok(Some(header))
    }
}

impl Frame {
    fn new(header: &Header, extended: Extended, stored: u64) -> Result<Self, Broken> {
        let link = header.link_name_bytes().unwrap_or_default().into_owned();
        let modified = header.mtime().ok().and_then(|it| i64::try_from(it).ok());
        Ok(Self {
            kind: header.entry_type(),
            name: extended
                .name
                .unwrap_or_else(|| header.path_bytes().into_owned()),
            link: extended.link.unwrap_or(link),
            mode: header
                .mode()
                .map_err(|_| Broken("a mode in the archive is no number"))?,
            modified: extended.modified.or(modified).unwrap_or(0),
            nanoseconds: extended.nanoseconds,
            owner: (
                extended.user.or(header.uid().ok()).unwrap_or(0),
                extended.group.or(header.gid().ok()).unwrap_or(0),
            ),
            attributes: extended.attributes,
            stored,
            size: stored,
            segments: None,
        })
    }
}

/// Fills a block.
pub(crate) fn fill(input: &mut impl Read, block: &mut [u8]) -> Result<(), FrameError> {
    input.read_exact(block).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Broken("the archive ends before its end mark; part of it is missing").into()
        }
        _ => FrameError::Read(error),
    })
}

fn number(field: io::Result<u64>) -> Result<u64, Broken> {
    field.map_err(|_| Broken("a size in the archive is no number"))
}
