//! Packs single entries of a tree as a layer: those that somebody picks, one after the other.

use std::ffi::CStr;
use std::fmt;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::Stat;

use super::attributes::{LISTS, Told};
use super::pack::Packer;
use super::{LayerLimits, LayerReport, Shift};
use crate::PackError;

/// Packs what it is given of a tree that is seen through an overlay.
pub struct Picker<W>(Packer<W>);

impl<W> fmt::Debug for Picker<W> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Picker").finish_non_exhaustive()
    }
}

impl Shift {
    pub(super) fn owner(self, mut found: Stat) -> Stat {
        let id = |id| (self.id)(id, self.base);
        (found.st_uid, found.st_gid) = (id(found.st_uid), id(found.st_gid));
        found
    }

    pub(super) fn lists(self, mut told: Told) -> Told {
        let all = told.kept.iter_mut();
        for (_, value) in all.filter(|(name, _)| name.starts_with(LISTS)) {
            *value = (self.list)(std::mem::take(value), self.base);
        }
        told
    }
}

impl<W: Write> Picker<W> {
    /// Begins a layer.
    pub fn new(out: W, limits: LayerLimits, shift: Option<Shift>) -> Self {
        Self(Packer::new(out, limits, shift, true))
    }

    /// Packs names too that an image has for marks, and tells them from those. That is for whoever
    /// compares what was packed; to others it is no layer.
    #[must_use]
    pub fn with_all_names(mut self) -> Self {
        self.0.takes_all_names = true;
        self
    }

    /// Packs the root of the tree, without anything in it.
    ///
    /// # Errors
    /// When it cannot be read or written whole.
    pub fn root(&mut self, root: &OwnedFd) -> Result<(), PackError> {
        self.0.folder(root, b"./", b"")
    }

    /// Packs what has this name in an open directory, a directory without anything in it. The path
    /// of that directory in the tree is empty or ends with a slash.
    ///
    /// # Errors
    /// When it cannot be read or written whole, has too much, or an archive has no word for it.
    pub fn entry(&mut self, here: &OwnedFd, own: &CStr, above: &[u8]) -> Result<(), PackError> {
        let mut name = above.to_vec();
        self.0.entry(here, own, &mut name).map(drop)
    }

    /// Says that this name is gone from a directory.
    ///
    /// # Errors
    /// When it cannot be written, or an archive has no word for it.
    pub fn gone(&mut self, own: &CStr, above: &[u8]) -> Result<(), PackError> {
        self.0.gone(&[above, own.to_bytes()].concat(), above.len())
    }

    /// Ends the layer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<LayerReport, PackError> {
        self.0.finish()
    }
}
