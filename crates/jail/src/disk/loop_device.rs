//! Loop devices: files that look like disks.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::sys;

/// LOOP_CTL_GET_FREE and LOOP_CONFIGURE of linux/loop.h.
const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LOOP_CONFIGURE: u64 = 0x4C0A;
/// LO_FLAGS_AUTOCLEAR: the device lets its file go with its last user.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// `struct loop_config` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    file: u32,
    block_bytes: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [u8; 160],
    init: [u64; 2],
}

/// Puts the file behind a free loop device. Another process may take the free number between our
/// asking and our taking, so this asks again.
pub(super) fn attach(file: &File, block_bytes: u32) -> io::Result<(File, PathBuf)> {
    use std::os::fd::AsRawFd;
    let control = File::options()
        .read(true)
        .write(true)
        .open("/dev/loop-control")?;
    let mut attempts = 0;
    loop {
        let number = sys::ioctl_number(control.as_fd(), LOOP_CTL_GET_FREE, 0)?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = File::options().read(true).write(true).open(&path)?;
        let info = LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_AUTOCLEAR,
            names: [0; 160],
            init: [0; 2],
        };
        let mut config = LoopConfig {
            file: file.as_raw_fd() as u32,
            block_bytes,
            info,
            reserved: [0; 8],
        };
        match sys::ioctl_struct(device.as_fd(), LOOP_CONFIGURE, &mut config) {
            Ok(()) => return Ok((device, path)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempts < 100 => {
                attempts += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a device still has the file of this inode. The kernel names a nameless file after its
/// inode; a device that has none has no such entry.
pub(super) fn holds(device: &Path, inode: u64) -> bool {
    let name = device.file_name().unwrap_or_default();
    let entry = Path::new("/sys/block").join(name).join("loop/backing_file");
    fs::read_to_string(entry).is_ok_and(|file| file.contains(&format!("#{inode} ")))
}
