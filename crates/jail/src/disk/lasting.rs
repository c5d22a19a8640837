//! File systems that outlive sandboxes: those of named volumes.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::size::{check_size, resize};
use super::{BLOCK_BYTES, ext4, loop_device};
use crate::faults::at;

/// Makes the file of a file system that outlives sandboxes: with a journal, and with `content` as
/// its one folder. It is sparse, and takes what is written to it.
///
/// # Errors
/// Without mke2fs, or when the host's disk refuses. FileTooLarge for one that is larger than may
/// be, or than the host's file system has files.
pub fn make_lasting(image: &Path, size_bytes: u64, content: &Path) -> io::Result<()> {
    check_size(size_bytes)?;
    let file = File::create_new(image).map_err(at("make its file"))?;
    resize(&file, size_bytes)?;
    let around = content.parent().unwrap_or(content);
    let source = around.join("content");
    fs::create_dir(&source).map_err(at("make its folder"))?;
    let inner = source.join(content.file_name().unwrap_or_default());
    fs::rename(content, &inner).map_err(at("make its folder"))?;
    let options = [
        "-b",
        "4096",
        "-E",
        "lazy_itable_init=1,nodiscard,root_owner=0:0",
        "-d",
    ];
    ext4::make(size_bytes, &options, &source, image)?;
    fs::rename(&inner, content).map_err(at("make its folder"))?;
    fs::remove_dir(&source).map_err(at("make its folder"))?;
    file.sync_all().map_err(at("keep its file"))
}

/// Mounts a file system that outlives sandboxes. What its files let go of, its file does too.
///
/// # Errors
/// Without loop devices or the right to mount; the message names the step.
pub fn mount_lasting(image: &File) -> io::Result<OwnedFd> {
    let attached = loop_device::attach(image, BLOCK_BYTES);
    let (_device, path) = attached.map_err(at("attach a loop device"))?;
    ext4::mount(&path, &["noinit_itable", "discard"]).map_err(at("mount it"))
}
