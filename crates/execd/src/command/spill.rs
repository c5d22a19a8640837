//! Output that has grown too long for the heap: an anonymous file in memory, which only this
//! process can reach, counted against the sandbox. A byte keeps its offset for good; what is
//! dropped from the front is a hole.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;
use rustix::param::page_size;

/// A file of output.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    /// Up to here there is a hole; a multiple of the page size.
    hollow: u64,
}

impl Spill {
    /// An empty file.
    ///
    /// # Errors
    /// When the kernel gives none: no memory or no descriptors are left.
    pub(crate) fn new(start: u64) -> Result<Self, Errno> {
        let file = memfd_create("output", MemfdFlags::CLOEXEC)?;
        let page = page_size() as u64;
        Ok(Self {
            file: file.into(),
            hollow: start / page * page,
        })
    }

    /// Writes at an offset.
    ///
    /// # Errors
    /// When memory is exhausted.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Reads from an offset up to the end of `buffer`; how much was read.
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        let read = self.file.read_exact_at(buffer, at);
        // The file is in memory and as long as its record says, so no read can fail.
        read.map_or(0, |()| buffer.len())
    }

    /// Gives the memory in front of `start` back.
    pub(crate) fn drop_front(&mut self, start: u64) {
        let page = page_size() as u64;
        let whole = start / page * page;
        if whole <= self.hollow {
            return;
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let dug = fallocate(self.file.as_fd(), hole, self.hollow, whole - self.hollow);
        if dug.is_ok() {
            self.hollow = whole;
        }
    }
}
