//! The writable layer of one sandbox: an ext4 file system of a fixed size in a sparse file without
//! a name, mounted nowhere but in the sandbox.
//!
//! The file has no name and the loop device clears itself, so whatever dies at whatever moment, the
//! kernel takes everything back with the last mount. File systems of one size are copies of a
//! template: 60 KB instead of a run of mke2fs. They are written through the device, so that they
//! are in its cache when it is mounted: nobody waits for the host's disk.

mod ext4;
mod inodes;
mod lasting;
mod layers;
mod loop_device;
mod size;
mod templates;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};

use crate::faults::at;

pub use inodes::{begin_elsewhere, has_changed};
pub use lasting::{make_lasting, mount_lasting};
pub use layers::{FOLDER, Usage, add_upper, clear_number, has_room, unfinished, upper, work};
pub use size::{BYTES_MAX, check_size, try_size};
use size::{nameless, resize};
use templates::Templates;

/// Where disks are made: a folder of the state directory.
#[derive(Debug)]
pub struct Maker {
    folder: PathBuf,
    templates: Templates,
    /// The devices of the files that were given away, by device and inode of the file.
    given: HashMap<(u64, u64), PathBuf>,
    /// Empty files that came back. A new one costs up to 0.5 ms on a host's ext4 without a journal,
    /// which passes over all inodes that were deleted in the last minutes.
    spares: Vec<File>,
}

/// A disk that was made.
#[derive(Debug)]
pub struct Disk {
    /// Its detached mount.
    pub mount: OwnedFd,
    /// The file behind it. Whoever closes it last gives its blocks back to the host's disk, which
    /// may take long: not the sandbox's last process, whose end others wait for.
    pub file: OwnedFd,
    /// Its block device, which is there for as long as something of it is mounted.
    pub device: PathBuf,
    /// What it holds while it is empty.
    pub usage: Usage,
}

/// What overlayfs needs of a disk, and what the sandbox's daemon keeps there.
const FOLDERS: [&str; 3] = [UPPER, "work", "sessions"];
/// What the sandbox itself writes.
pub const UPPER: &str = "upper";

/// Nothing on such a disk outlives its sandbox, so nobody need wait for the host's disk to flush.
/// No thread of the kernel reads the maps of all 80 groups of 10 GiB into memory, nor writes tables
/// that nobody uses. Attributes that are too long for an inode are not looked up to be shared.
const OPTIONS: [&str; 4] = [
    "noinit_itable",
    "nobarrier",
    "no_prefetch_block_bitmaps",
    "no_mbcache",
];

/// Size of a block of the file systems, and of their devices: with a smaller one of the device, a
/// mount would drop what was written before.
const BLOCK_BYTES: u32 = 4096;

/// Empty files that are kept.
const SPARES_MAX: usize = 16;

impl Maker {
    /// A maker that keeps its templates in `folder`, where no other one makes any.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            templates: Templates::new(folder),
            given: HashMap::new(),
            spares: Vec::new(),
        })
    }

    /// A new file system of `size_bytes`, with its folders belonging to `owner`.
    ///
    /// # Errors
    /// Without mke2fs, loop devices or the right to mount; the message names the step. FileTooLarge
    /// for one that is larger than may be, or than the host's file system has files.
    pub fn make(&mut self, size_bytes: u64, owner: u32) -> io::Result<Disk> {
        let content = self.templates.of(size_bytes)?;
        let file = match self.spares.pop() {
            Some(file) => file,
            None => nameless(&self.folder).map_err(at("make a file"))?,
        };
        resize(&file, size_bytes)?;
        let (device, path) =
            loop_device::attach(&file, BLOCK_BYTES).map_err(at("attach a loop device"))?;
        for (place, bytes) in content {
            device
                .write_all_at(bytes, *place)
                .map_err(at("copy the template"))?;
        }
        let mount = ext4::mount(&path, &OPTIONS).map_err(at("mount the disk"))?;
        drop(device);
        read_maps_when_needed(&path);
        give(&mount, owner).map_err(at("prepare the disk"))?;
        warm(&mount).map_err(at("try the disk"))?;
        let usage = Usage::of(&mount).map_err(at("measure the disk"))?;
        self.given.insert(name_of(&file)?, path.clone());
        Ok(Disk {
            mount,
            file: file.into(),
            device: path,
            usage,
        })
    }

    /// Lets go of what sandboxes had: mounts, and the files of disks, which are kept for later ones
    /// once nothing can write to them any more.
    pub fn take_back(&mut self, held: Vec<OwnedFd>) {
        let mut files = Vec::new();
        for fd in held {
            let fd = File::from(fd);
            let device = name_of(&fd)
                .ok()
                .and_then(|name| Some((name.1, self.given.remove(&name)?)));
            match device {
                Some(device) => files.push((fd, device)),
                // Closed before any file is looked at: with its last mount a device lets go.
                None => drop(fd),
            }
        }
        for (file, (inode, device)) in files {
            let is_free = !loop_device::holds(&device, inode);
            if is_free && self.spares.len() < SPARES_MAX && file.set_len(0).is_ok() {
                self.spares.push(file);
            }
        }
    }
}

/// A further mount of a disk that is mounted already.
///
/// # Errors
/// The kernel's, unchanged.
pub fn mount_again(device: &Path) -> io::Result<OwnedFd> {
    ext4::mount(device, &OPTIONS)
}

/// Device and inode of a file.
fn name_of(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

/// Does once what overlayfs will do, so that the blocks it needs are in memory when a create waits
/// for them.
fn warm(mount: &OwnedFd) -> io::Result<()> {
    for name in ["upper/try", "work/try"] {
        rustix::fs::mkdirat(mount, name, Mode::from_raw_mode(0o700))?;
        rustix::fs::unlinkat(mount, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Keeps the first allocation from reading the maps of all block groups ahead, which would be a
/// third of a disk's making and pages that no small sandbox uses. A /sys that cannot be written
/// only costs that.
fn read_maps_when_needed(device: &Path) {
    if let Some(name) = device.file_name() {
        let knob = Path::new("/sys/fs/ext4").join(name).join("mb_prefetch");
        let _ = fs::write(knob, "1");
    }
}

/// Makes the folders of a disk in another folder, for the sandbox's root.
///
/// # Errors
/// The kernel's, unchanged.
pub fn add_folders(folder: &OwnedFd, owner: u32) -> io::Result<()> {
    for name in FOLDERS {
        rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755))?;
    }
    give(folder, owner)
}

/// Makes the folders the sandbox's own.
fn give(folder: &OwnedFd, owner: u32) -> io::Result<()> {
    use rustix::fs::{Gid, Uid};
    let (user, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)));
    for name in FOLDERS {
        rustix::fs::chownat(folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
