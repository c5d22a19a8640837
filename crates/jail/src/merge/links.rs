//! Keeps files of several names together that are copied.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::FOLDER;
use super::entry::Cursor;
use crate::tree;

/// A folder of the result, while it is made, with one name for each file of several that was
/// copied, so that the others become links of it: nothing of them need be remembered here.
#[derive(Debug)]
pub(super) struct Links {
    root: OwnedFd,
    /// No layer has it.
    name: String,
    folder: Option<OwnedFd>,
}

impl Links {
    pub(super) fn named(root: OwnedFd, layers: &[Cursor]) -> io::Result<Self> {
        // By chance, so that no layer can have all that are tried.
        let name = loop {
            let mut chance = [0; 8];
            getrandom(&mut chance, GetRandomFlags::empty())?;
            let name = format!("links{:016x}", u64::from_ne_bytes(chance));
            if !is_in_any(layers, &name)? {
                break name;
            }
        };
        Ok(Self {
            root,
            name,
            folder: None,
        })
    }

    pub(super) fn is_named(&self, name: &CStr) -> bool {
        name.to_bytes() == self.name.as_bytes()
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        match self.folder.take() {
            Some(_) => tree::remove(&self.root, Path::new(&self.name)),
            None => Ok(()),
        }
    }

    fn open(&mut self) -> io::Result<&OwnedFd> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => {
                rustix::fs::mkdirat(&self.root, self.name.as_str(), Mode::RWXU)?;
                rustix::fs::openat(&self.root, self.name.as_str(), FOLDER, Mode::empty())?
            }
        };
        Ok(self.folder.insert(folder))
    }

    /// Makes a name one more of a file that was copied already; `None` if it was not, else whether
    /// the name was still to be had.
    pub(super) fn link(
        &self,
        shared: &str,
        made: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<Option<bool>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        match rustix::fs::linkat(folder, shared, made, name, AtFlags::empty()) {
            Ok(()) => Ok(Some(true)),
            Err(Errno::EXIST) => Ok(Some(false)),
            // This file system may take fewer names of a file than the layer's.
            Err(Errno::NOENT | Errno::MLINK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Keeps note of a file that was copied.
    pub(super) fn keep(
        &mut self,
        shared: &str,
        made: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        let folder = self.open()?;
        match rustix::fs::unlinkat(folder, shared, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(rustix::fs::linkat(
            made,
            name,
            folder,
            shared,
            AtFlags::empty(),
        )?)
    }
}

fn is_in_any(layers: &[Cursor], name: &str) -> io::Result<bool> {
    for layer in layers {
        match rustix::fs::statat(&layer.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(true),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}
