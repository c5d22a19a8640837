//! The writable layer of one sandbox: an ext4 file system of a fixed size in a sparse file without
//! a name, mounted nowhere but in the sandbox.
//!
//! The file has no name and the loop device clears itself, so whatever dies at whatever moment, the
//! kernel takes everything back with the last mount. File systems of one size are copies of a
//! template: 60 KB instead of a run of mke2fs. They are written through the device, so that they
//! are in its cache when it is mounted: nobody waits for the host's disk.

use std::collections::BTreeMap;
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
    /// What new file systems hold, by their size.
    contents: BTreeMap<u64, Vec<Piece>>,
}

/// Bytes of a file system, and where they stand.
type Piece = (u64, Vec<u8>);

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

/// Nothing to recover after a crash, nothing to grow, no copies of what is lost with the disk.
const FEATURES: &str = "^has_journal,^resize_inode,sparse_super2";
/// All that a new file system must hold lies together at its start: each piece elsewhere costs a
/// copy at the start and a discard on the host's disk at the end.
const EXTRAS: &str = "lazy_itable_init=1,nodiscard,num_backup_sb=0,packed_meta_blocks=1";
/// How many block groups keep their tables together; 128 of 128 MiB are 16 GiB.
const GROUPS_TOGETHER: &str = "128";
/// What overlayfs needs of a disk.
const FOLDERS: [&str; 2] = ["upper", "work"];

/// Size of a block of the file systems, and of their devices: with a smaller one of the device, a
/// mount would drop what was written before.
const BLOCK_BYTES: u32 = 4096;

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
            contents: BTreeMap::new(),
        })
    }

    /// A new file system of `size_bytes`, with the folders `upper` and `work` that belong to
    /// `owner`.
    ///
    /// # Errors
    /// Without mke2fs, loop devices or the right to mount; the message names the step.
    pub fn make(&mut self, size_bytes: u64, owner: u32) -> io::Result<Disk> {
        if !self.contents.contains_key(&size_bytes) {
            let template = self.template(size_bytes);
            let content = template.and_then(|template| pieces(&template));
            let content = content.map_err(at("make a file system"))?;
            if self.contents.len() >= TEMPLATES_MAX {
                self.contents.clear();
            }
            self.contents.insert(size_bytes, content);
        }
        let content = self
            .contents
            .get(&size_bytes)
            .map_or(&[][..], Vec::as_slice);
        let file = self.nameless(size_bytes).map_err(at("make a file"))?;
        let (device, path) = attach(&file).map_err(at("attach a loop device"))?;
        for (place, bytes) in content {
            device
                .write_all_at(bytes, *place)
                .map_err(at("copy the template"))?;
        }
        let mount = mount_ext4(&path).map_err(at("mount the disk"))?;
        drop(device);
        give(&mount, owner).map_err(at("prepare the disk"))?;
        warm(&mount).map_err(at("try the disk"))?;
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
        let content = self.content()?;
        let made = Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-m", "0"])
            .args(["-b", &BLOCK_BYTES.to_string()])
            .args(["-O", FEATURES, "-E", EXTRAS, "-G", GROUPS_TOGETHER, "-d"])
            .args([&content, &unfinished])
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

    /// What every new file system holds.
    fn content(&self) -> io::Result<PathBuf> {
        let content = self.folder.join("content");
        for name in FOLDERS {
            fs::create_dir_all(content.join(name))?;
        }
        Ok(content)
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

    /// An empty file without a name.
    fn nameless(&self, size_bytes: u64) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(rustix::fs::open(&self.folder, flags, mode)?);
        file.set_len(size_bytes)?;
        Ok(file)
    }
}

/// What a file holds, without its holes.
fn pieces(file: &File) -> io::Result<Vec<Piece>> {
    let mut found = Vec::new();
    let mut end = 0;
    while let Ok(start) = rustix::fs::seek(file, SeekFrom::Data(end)) {
        end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        found.push((start, bytes));
    }
    Ok(found)
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
            block_bytes: BLOCK_BYTES,
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

/// Makes `upper` and `work` in a folder, for the sandbox's root.
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

fn at(step: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {error}"))
}
