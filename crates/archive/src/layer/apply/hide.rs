//! Takes away what a layer hides of those below it, and leaves what it brings itself.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, XattrFlags, fsetxattr, mknodat};
use rustix::io::Errno;

use super::Applied;
use crate::layer::marks::OPAQUE_ATTRIBUTE;
use crate::layer::place;

impl Applied {
    /// A name of the layers below is gone.
    pub(super) fn hide(
        &mut self,
        here: &OwnedFd,
        above: Vec<Vec<u8>>,
        gone: &[u8],
    ) -> Result<(), Errno> {
        if !self.seen.has(&above, gone) {
            place::remove(here, gone)?;
            if self.keeps_marks {
                let device = FileType::CharacterDevice;
                mknodat(here, gone, device, Mode::empty(), 0)?;
            }
            return Ok(());
        }
        match place::kind(here, gone)? {
            Some(FileType::Directory) => {
                let mut parts = above;
                parts.push(gone.to_vec());
                self.hide_all(parts)
            }
            _ => Ok(()),
        }
    }

    /// Nothing of the layers below shows in a directory.
    pub(super) fn hide_all(&mut self, directory: Vec<Vec<u8>>) -> Result<(), Errno> {
        // By name, as there may be more of them than can be open at once.
        let mut directories = vec![directory];
        while let Some(above) = directories.pop() {
            let parts: Vec<&[u8]> = above.iter().map(Vec::as_slice).collect();
            let folder = self.open(&parts)?;
            if self.keeps_marks {
                mark_opaque(&folder)?;
            }
            for name in place::names(&folder)? {
                let own = name.to_bytes();
                if !self.seen.has(&above, own) {
                    place::remove(&folder, own)?;
                } else if place::kind(&folder, own)? == Some(FileType::Directory) {
                    directories.push([above.as_slice(), &[own.to_vec()]].concat());
                }
            }
        }
        Ok(())
    }
}

/// Says in the tree itself that nothing shows in a directory from below.
pub(super) fn mark_opaque(folder: &OwnedFd) -> Result<(), Errno> {
    fsetxattr(folder, OPAQUE_ATTRIBUTE, b"y", XattrFlags::empty())
}
