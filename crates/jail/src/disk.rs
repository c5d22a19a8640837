//! The writable layer of one sandbox: an ext4 file system of a fixed size in a sparse file without
//! a name, mounted nowhere but in the sandbox.
//!
//! The file has no name and the loop device clears itself, so whatever dies at whatever moment, the
//! kernel takes everything back with the last mount. File systems of one size are copies of a
//! template: 160 KB instead of a run of mke2fs.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::sys;

/// Where disks are made: a folder of the state directory.
#[derive(Debug)]
pub struct Maker {
    folder: PathBuf,
}

/// A disk that was made.
#[derive(Debug)]
pub struct Disk {
    /// Its detached mount.
    pub mount: OwnedFd,
    /// The file behind it. Whoever closes it last gives its blocks back to the host's disk, which
    /// may take long: not the sandbox's last process, whose end others wait for.
    pub file: OwnedFd,
}

/// LOOP_CTL_GET_FREE and LOOP_CONFIGURE of linux/loop.h.
const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LOOP_CONFIGURE: u64 = 0x4C0A;
/// LO_FLAGS_AUTOCLEAR: the device lets its file go with its last user.
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// Templates that are kept, one for each size.
const TEMPLATES_MAX: usize = 16;

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

impl Maker {
    /// A maker that keeps its templates in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// A new file system of `size_bytes`, with the folders `upper` and `work` that belong to
    /// `owner`.
    ///
    /// # Errors
    /// Without mke2fs, loop devices or the right to mount; the message names the step.
    pub fn make(&self, size_bytes: u64, owner: u32) -> io::Result<Disk> {
        let template = self
            .template(size_bytes)
            .map_err(at("make a file system"))?;
        let file = self
            .nameless_copy(&template, size_bytes)
            .map_err(at("copy the template"))?;
        let (device, path) = attach(&file).map_err(at("attach a loop device"))?;
        let mount = mount_ext4(&path).map_err(at("mount the disk"))?;
        drop(device);
        add_folders(&mount, owner).map_err(at("prepare the disk"))?;
        Ok(Disk {
            mount,
            file: file.into(),
        })
    }

    /// An empty file system of this size, made once.
    fn template(&self, size_bytes: u64) -> io::Result<File> {
        let path = self.folder.join(format!("template-{size_bytes}.ext4"));
        if let Ok(file) = File::open(&path) {
            return Ok(file);
        }
        let unfinished = path.with_extension("new");
        File::create(&unfinished)?.set_len(size_bytes)?;
        let made = Command::new("mke2fs")
            .args([
                "-q",
                "-F",
                "-t",
                "ext4",
                "-m",
                "0",
                "-O",
                "^has_journal,^resize_inode",
            ])
            .args(["-E", "lazy_itable_init=1,nodiscard"])
            .arg(&unfinished)
            .env_clear()
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .output()?;
        if !made.status.success() {
            let _ = fs::remove_file(&unfinished);
            let words = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(io::Error::other(format!(
                "mke2fs of {size_bytes} bytes: {words}"
            )));
        }
        self.forget_some();
        fs::rename(&unfinished, &path)?;
        File::open(&path)
    }

    /// Removes templates when there are many: callers choose sizes, and must not fill the state
    /// directory by it. One that is needed again costs one run of mke2fs.
    fn forget_some(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let templates = entries.map(|entry| entry.path());
        let templates =
            templates.filter(|path| path.extension().is_some_and(|kind| kind == "ext4"));
        for path in templates.skip(TEMPLATES_MAX - 1) {
            let _ = fs::remove_file(path);
        }
    }

    /// A file without a name that holds what the template holds, holes included.
    fn nameless_copy(&self, template: &File, size_bytes: u64) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let copy = File::from(rustix::fs::open(
            &self.folder,
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        copy.set_len(size_bytes)?;
        let mut buffer = vec![0; 64 * 1024];
        let mut at = 0;
        while let Ok(start) = rustix::fs::seek(template, SeekFrom::Data(at)) {
            at = rustix::fs::seek(template, SeekFrom::Hole(start))?;
            let mut from = start;
            while from < at {
                let length = buffer.len().min((at - from) as usize);
                let piece = buffer.get_mut(..length).unwrap_or_default();
                template.read_exact_at(piece, from)?;
                copy.write_all_at(piece, from)?;
                from += length as u64;
            }
        }
        Ok(copy)
    }
}

/// Puts the file behind a free loop device. Another process may take the free number between our
/// asking and our taking, so this asks again.
fn attach(file: &File) -> io::Result<(File, PathBuf)> {
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
            block_bytes: 0,
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

fn mount_ext4(device: &Path) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", device)?;
    // Nothing on this disk outlives the sandbox, so nobody need wait for the host's disk to flush.
    for option in ["noinit_itable", "nobarrier"] {
        rustix::mount::fsconfig_set_flag(context.as_fd(), option)?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// Makes `upper` and `work` in a mount, for the sandbox's root.
///
/// # Errors
/// The kernel's, unchanged.
pub fn add_folders(mount: &OwnedFd, owner: u32) -> io::Result<()> {
    use rustix::fs::{Gid, Uid};
    for name in ["upper", "work"] {
        rustix::fs::mkdirat(mount, name, Mode::from_raw_mode(0o755))?;
        let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
        rustix::fs::chownat(
            mount,
            name,
            Some(user),
            Some(group),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
    }
    Ok(())
}

fn at(step: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {error}"))
}
