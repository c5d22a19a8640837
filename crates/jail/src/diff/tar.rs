//! What is other in one view as a layer of an image.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use barchan_archive::PackError;
use barchan_archive::layer::{LayerLimits, LayerReport, Picker, Shift, is_mark};
use rustix::fs::{Mode, openat};

use super::change::{Change, Kind, Part, Type};
use super::entry::FOLDER;
use super::{Limits, Summary, compare};
use crate::capture;

/// Which names go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those that an image has no marks for.
    OfImages,
    /// All.
    All,
}

/// Writes what is other in the new view as a tar stream: what was added or changed, with the
/// folders above it, and a mark for each name that is gone. Unpacked over the old view it makes the
/// new one, but for sockets and devices, and for names that an image has for marks.
/// `read_bytes_max` of the limits holds for what is compared and again for what is packed;
/// `output_bytes_max` does not count.
///
/// # Errors
/// When the kernel refuses or the stream cannot be written; `InvalidData` for what an image has no
/// word for, `FileTooLarge` when there is more than the limits allow. The stream is to be
/// thrown away then.
// BOUNDARY: sandbox → host. Test: a_tar_of_changes_makes_the_new_view_of_the_old_one
pub fn tar_of_changes(
    old: BorrowedFd<'_>,
    new: BorrowedFd<'_>,
    (changed, names): (&[OwnedFd], Names),
    limits: &Limits,
    out: impl Write,
) -> io::Result<(Summary, LayerReport)> {
    let limits = Limits {
        output_bytes_max: u64::MAX,
        diffs_bytes_max: 0,
        ..limits.clone()
    };
    let layer_limits = LayerLimits {
        entries_max: limits.entries_max,
        bytes_max: limits.read_bytes_max,
    };
    let shift = (limits.base != 0).then_some(Shift {
        base: limits.base,
        id: capture::inner,
        list: |list, base| capture::shifted(list, |id| capture::inner(id, base)),
    });
    let root = openat(new, ".", FOLDER, Mode::empty())?;
    let picker = Picker::new(out, layer_limits, shift);
    let mut packer = Changes {
        picker: match names {
            Names::OfImages => picker,
            Names::All => picker.with_all_names(),
        },
        names,
        here: openat(&root, ".", FOLDER, Mode::empty())?,
        above: Vec::new(),
        packed: Vec::new(),
        hidden: None,
        root,
    };
    let mut sink = |change: &Change| packer.add(change);
    let summary = compare(old, new, changed, &limits, &mut sink)?;
    match summary.cut {
        None => Ok((summary, packer.picker.finish().map_err(unpacked)?)),
        Some(why) => {
            let words = format!("there is more to compare than there may be: {why:?}");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, words))
        }
    }
}

/// Packs changes as they are told: a folder before what is in it, and all that is in it together.
struct Changes<W> {
    picker: Picker<W>,
    names: Names,
    root: OwnedFd,
    /// The folder of the change before, and its path, which is empty or ends with a slash.
    here: OwnedFd,
    above: Vec<u8>,
    /// The folder that was packed last; those above it were too.
    packed: Vec<u8>,
    /// What is no folder any more, whatever was in it.
    hidden: Option<Vec<u8>>,
}

impl<W: Write> Changes<W> {
    fn add(&mut self, change: &Change) -> io::Result<()> {
        let path = change.path.0.strip_prefix(b"/").unwrap_or_default();
        if path.is_empty() {
            return self.picker.root(&self.root).map_err(unpacked);
        }
        if self.names == Names::OfImages && path.split(|byte| *byte == b'/').any(is_mark) {
            return Ok(());
        }
        let is_hidden = |hidden: &Vec<u8>| path.starts_with(hidden);
        if change.change == Kind::Deleted && self.hidden.as_ref().is_some_and(is_hidden) {
            return Ok(());
        }
        let own_at = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let (above, own) = path.split_at(own_at);
        self.enter(above)?;
        let is_other = change.differs.contains(&Part::Type);
        if change.change == Kind::Deleted || is_other {
            self.hidden = Some([path, b"/"].concat());
        }
        let own = CString::new(own)?;
        let kind = change.new.as_ref().map(|new| new.kind);
        let is_left_out = matches!(
            kind,
            Some(Type::Socket | Type::CharacterDevice | Type::BlockDevice | Type::Other)
        );
        if kind.is_none() || (is_left_out && change.change == Kind::Changed) {
            return self.picker.gone(&own, above).map_err(unpacked);
        }
        if kind == Some(Type::Directory) {
            self.packed = [path, b"/"].concat();
        }
        self.picker.entry(&self.here, &own, above).map_err(unpacked)
    }

    /// Opens the folder of a change, and packs those on the way that were not.
    fn enter(&mut self, above: &[u8]) -> io::Result<()> {
        if self.above != above {
            self.here = openat(&self.root, ".", FOLDER, Mode::empty())?;
            let mut entered = 0;
            for part in above.split_inclusive(|byte| *byte == b'/') {
                let (before, end) = (entered, entered + part.len());
                let own = CString::new(part.strip_suffix(b"/").unwrap_or(part))?;
                let (before, path) = (above.get(..before), above.get(..end));
                let path = path.unwrap_or_default();
                if !self.packed.starts_with(path) {
                    let before = before.unwrap_or_default();
                    self.picker
                        .entry(&self.here, &own, before)
                        .map_err(unpacked)?;
                    self.packed = path.to_vec();
                }
                self.here = openat(&self.here, own.as_c_str(), FOLDER, Mode::empty())?;
                entered = end;
            }
            self.above = above.to_vec();
        }
        Ok(())
    }
}

fn unpacked(error: PackError) -> io::Error {
    match error {
        PackError::Write(error) => error,
        PackError::Refused(..) => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        error => io::Error::other(error.to_string()),
    }
}
