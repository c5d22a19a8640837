//! The writable layer of one sandbox: an ext4 file system of a fixed size in a sparse file without
//! a name, mounted nowhere but in the sandbox.
//!
//! The file has no name and the loop device clears itself, so whatever dies at whatever moment, the
//! kernel takes everything back with the last mount. File systems of one size are copies of a
//! template: 60 KB instead of a run of mke2fs. They are written through the device, so that they
//! are in its cache when it is mounted: nobody waits for the host's disk.

mod layers;
mod loop_device;
mod size;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, Mode, SeekFrom};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::faults::at;

pub use layers::{FOLDER, Usage, add_upper, clear_number, unfinished, upper, work};
pub use size::{BYTES_MAX, check_size, try_size};
use size::{nameless, resize};

/// Where disks are made: a folder of the state directory.
#[derive(Debug)]
pub struct Maker {
    folder: PathBuf,
    /// What new file systems hold, by their size.
    contents: BTreeMap<u64, Vec<Piece>>,
    /// The devices of the files that were given away, by device and inode of the file.
    given: HashMap<(u64, u64), PathBuf>,
    /// Empty files that came back. A new one costs up to 0.5 ms on a host's ext4 without a journal,
    /// which passes over all inodes that were deleted in the last minutes.
    spares: Vec<File>,
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
    /// Its block device, which is there for as long as something of it is mounted.
    pub device: PathBuf,
    /// What it holds while it is empty.
    pub usage: Usage,
}

/// Nothing to recover after a crash, nothing to grow, no copies of what is lost with the disk.
const FEATURES: &str = "^has_journal,^resize_inode,sparse_super2";
/// All that a new file system must hold lies together at its start: each piece elsewhere costs a
/// copy at the start and a discard on the host's disk at the end.
const EXTRAS: &str = "lazy_itable_init=1,nodiscard,num_backup_sb=0,packed_meta_blocks=1";
/// How many block groups keep their tables together; 128 of 128 MiB are 16 GiB.
const GROUPS_TOGETHER: &str = "128";
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

/// Templates that are kept, one for each size.
const TEMPLATES_MAX: usize = 16;
/// Empty files that are kept.
const SPARES_MAX: usize = 16;

/// Endings of the names of templates, and of those that are not finished.
const TEMPLATE: &str = "ext4";
const UNFINISHED: &str = "new";

impl Maker {
    /// A maker that keeps its templates in `folder`, where no other one makes any.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let maker = Self {
            folder: folder.to_owned(),
            contents: BTreeMap::new(),
            given: HashMap::new(),
            spares: Vec::new(),
        };
        // What one left that died over it.
        for path in maker.files(UNFINISHED) {
            let _ = fs::remove_file(path);
        }
        Ok(maker)
    }

    /// A new file system of `size_bytes`, with its folders belonging to `owner`.
    ///
    /// # Errors
    /// Without mke2fs, loop devices or the right to mount; the message names the step. FileTooLarge
    /// for one that is larger than may be, or than the host's file system has files.
    pub fn make(&mut self, size_bytes: u64, owner: u32) -> io::Result<Disk> {
        if !self.contents.contains_key(&size_bytes) {
            check_size(size_bytes)?;
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
        let mount = mount_ext4(&path, &OPTIONS).map_err(at("mount the disk"))?;
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

    /// An empty file system of this size, made once.
    fn template(&self, size_bytes: u64) -> io::Result<File> {
        let name = format!("template-{size_bytes}-{:016x}.{TEMPLATE}", edition());
        let path = self.folder.join(name);
        if let Ok(file) = File::open(&path) {
            return Ok(file);
        }
        let unfinished = path.with_extension(UNFINISHED);
        let made = self.make_template(size_bytes, &unfinished).and_then(|()| {
            self.forget_some();
            fs::rename(&unfinished, &path)
        });
        if let Err(error) = made {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        File::open(&path)
    }

    fn make_template(&self, size_bytes: u64, path: &Path) -> io::Result<()> {
        resize(&File::create(path)?, size_bytes)?;
        let content = self.content()?;
        let block = BLOCK_BYTES.to_string();
        let options = [
            "-b",
            &block,
            "-O",
            FEATURES,
            "-E",
            EXTRAS,
            "-G",
            GROUPS_TOGETHER,
            "-d",
        ];
        run_mke2fs(size_bytes, &options, &content, path)
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
        for path in self.files(TEMPLATE).skip(TEMPLATES_MAX - 1) {
            let _ = fs::remove_file(path);
        }
    }

    /// The files whose names end so.
    fn files(&self, ending: &str) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(move |path| path.extension().is_some_and(|it| it == ending))
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
    run_mke2fs(size_bytes, &options, &source, image)?;
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
    mount_ext4(&path, &["noinit_itable", "discard"]).map_err(at("mount it"))
}

/// A further mount of a disk that is mounted already.
///
/// # Errors
/// The kernel's, unchanged.
pub fn mount_again(device: &Path) -> io::Result<OwnedFd> {
    mount_ext4(device, &OPTIONS)
}

fn run_mke2fs(size_bytes: u64, options: &[&str], source: &Path, image: &Path) -> io::Result<()> {
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-m", "0"])
        .args(options)
        .args([source, image])
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .map_err(at("run mke2fs"))?;
    if made.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&made.stderr).trim().to_owned();
    Err(io::Error::other(format!(
        "mke2fs of {size_bytes} bytes: {words}"
    )))
}

/// Device and inode of a file.
fn name_of(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
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

/// Keeps the first allocation from reading the maps of all block groups ahead, which would be a
/// third of a disk's making and pages that no small sandbox uses. A /sys that cannot be written
/// only costs that.
fn read_maps_when_needed(device: &Path) {
    if let Some(name) = device.file_name() {
        let knob = Path::new("/sys/fs/ext4").join(name).join("mb_prefetch");
        let _ = fs::write(knob, "1");
    }
}

/// What templates of this program are made with, as a number: those of another release stay in the
/// state directory and must not be taken for ours.
fn edition() -> u64 {
    let mut hasher = DefaultHasher::new();
    (FEATURES, EXTRAS, GROUPS_TOGETHER, FOLDERS, BLOCK_BYTES).hash(&mut hasher);
    hasher.finish()
}

fn mount_ext4(device: &Path, options: &[&str]) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", device)?;
    for option in options {
        rustix::mount::fsconfig_set_flag(context.as_fd(), *option)?;
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
mod tests {
    use super::*;

    /// Whether a disk's file system holds this name.
    fn has(disk: &Disk, name: &str) -> bool {
        rustix::fs::statat(&disk.mount, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    #[test]
    fn a_file_that_came_back_serves_an_empty_disk() {
        if !rustix::process::geteuid().is_root() {
            // Others cannot mount: their launcher makes no disks.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut maker = Maker::new(folder.path()).unwrap();
        let first = maker.make(64 << 20, 0).unwrap();
        rustix::fs::mkdirat(&first.mount, "upper/left", Mode::RWXU).unwrap();
        let inode = name_of(&File::from(first.file.try_clone().unwrap())).unwrap();
        maker.take_back(vec![first.file, first.mount]);
        let second = maker.make(128 << 20, 0).unwrap();
        let again = name_of(&File::from(second.file.try_clone().unwrap())).unwrap();
        assert_eq!(inode, again);
        assert!(has(&second, "upper") && !has(&second, "upper/left"));
    }

    /// What lies in a folder of disks and is not finished.
    fn unfinished_in(folder: &Path) -> Vec<PathBuf> {
        Maker {
            folder: folder.to_owned(),
            contents: BTreeMap::new(),
            given: HashMap::new(),
            spares: Vec::new(),
        }
        .files(UNFINISHED)
        .collect()
    }

    #[test]
    fn a_disk_that_cannot_be_made_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut maker = Maker::new(folder.path()).unwrap();
        for bytes in [BYTES_MAX + 1, 1 << 63, u64::MAX] {
            let error = maker.make(bytes, 0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
            let error = try_size(folder.path(), bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
            let place = folder.path().join("image");
            let error = make_lasting(&place, bytes, folder.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        }
        assert!(unfinished_in(folder.path()).is_empty());
        // Whatever it is that fails.
        fs::write(folder.path().join("content"), "no folder").unwrap();
        assert!(maker.make(64 << 20, 0).is_err());
        assert!(unfinished_in(folder.path()).is_empty());
    }

    #[test]
    fn what_the_host_has_no_files_of_is_told_as_such() {
        const EXT4: i64 = 0xef53;
        let folder = tempfile::tempdir().unwrap();
        let found = rustix::fs::statfs(folder.path()).unwrap();
        let tried = try_size(folder.path(), BYTES_MAX);
        match found.f_type == EXT4 {
            true => assert_eq!(tried.unwrap_err().kind(), io::ErrorKind::FileTooLarge),
            // Others have larger files.
            false => tried.unwrap(),
        }
        try_size(folder.path(), 1 << 40).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_maker_removes_what_an_earlier_one_did_not_finish() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["template-1-0.new", "template-1-0.ext4"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        Maker::new(folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "template-1-0.ext4");
    }

    #[test]
    fn a_file_that_is_still_mounted_serves_nobody_else() {
        if !rustix::process::geteuid().is_root() {
            // Others cannot mount: their launcher makes no disks.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut maker = Maker::new(folder.path()).unwrap();
        let first = maker.make(64 << 20, 0).unwrap();
        let still = first.mount.try_clone().unwrap();
        maker.take_back(vec![first.file, first.mount]);
        assert!(maker.spares.is_empty());
        drop(still);
    }
}
