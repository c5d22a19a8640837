//! Which processes would notice that the root's files are exchanged for others: those that write to
//! an open file, stand in a folder or have one open, see another root, or live in mounts of their
//! own.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, Statx, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::mount_table;
use super::movers::{self, Mover};
use crate::capture::Moment;
use crate::disk::FOLDER;

/// Most holders that are told of.
const HOLDERS_MAX: usize = 32;
/// Longest time to look, in nanoseconds: a sandbox may have very many descriptors.
const LOOK_NS_MAX: i64 = 5_000_000_000;
/// Longest name of what is held that is told, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// How long what the kernel tells of a process is, as a rule, in bytes.
const TABLE_BYTES: usize = 4 << 10;
/// The longest table of mounts that is read, in bytes.
const TABLE_BYTES_MAX: u64 = 4 << 20;

/// How a process holds on to the root's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holding {
    /// It has a file open for writing.
    Writes,
    /// It has a folder open.
    Folder,
    /// It stands in a folder.
    WorkingDirectory,
    /// It sees another root.
    Root,
    /// It has mounts of its own.
    Mounts,
}

/// A process that holds on to the root's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number in the sandbox.
    pub pid: i32,
    /// Its name, as it gave it to itself.
    pub name: String,
    /// How it holds on.
    pub how: Holding,
    /// What it holds; hostile bytes, made valid UTF-8.
    pub what: String,
}

/// The sandbox's PID 1, by its folder in the host's `/proc`.
#[derive(Debug)]
pub(super) struct Init {
    /// `/proc` of the host.
    processes: OwnedFd,
    folder: OwnedFd,
}

/// What tells the root's files from others.
struct Root {
    mount: u64,
    device: u64,
    inode: u64,
    namespace: (u64, u64),
    /// How many filters of system calls its commands have.
    filters: u32,
}

impl Init {
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        let processes = rustix::fs::open("/proc", FOLDER, Mode::empty())?;
        let folder = rustix::fs::openat(&processes, pid.to_string(), FOLDER, Mode::empty())?;
        Ok(Self { processes, folder })
    }

    /// What it has as its root.
    pub(super) fn open_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            &self.folder,
            "root",
            flags,
            Mode::empty(),
        )?)
    }

    /// The sandbox's mounts.
    pub(super) fn mounts(&self) -> io::Result<Vec<mount_table::Mount>> {
        Ok(mount_table::parse(&read(&self.folder, "mountinfo")?))
    }

    fn root(&self) -> io::Result<Root> {
        let mounts = self.mounts()?;
        let mount = mount_table::root(&mounts)
            .ok_or(io::ErrorKind::NotFound)?
            .id;
        let found = follow(&self.folder, "root")?;
        let namespace = follow(&self.folder, "ns/mnt")?;
        Ok(Root {
            mount,
            device: found.st_dev,
            inode: found.st_ino,
            namespace: (namespace.st_dev, namespace.st_ino),
            filters: movers::filters(&self.folder)? + 1,
        })
    }
}

/// Who uses the root's files.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// Who would notice that they are exchanged.
    pub(super) held: Vec<Holder>,
    /// Who only stands in a folder, and can be moved to the same one in another root.
    pub(super) movers: Vec<Mover>,
}

/// Who uses the root's files, of the processes that `list` has: a `cgroup.procs`. One that ends
/// meanwhile uses nothing.
// BOUNDARY: sandbox → host. Test: whoever_uses_the_files_is_found
pub(super) fn find(init: &Init, list: BorrowedFd<'_>) -> io::Result<Users> {
    let root = init.root()?;
    let mut users = Users::default();
    let began = Moment::now();
    for pid in pids(list)? {
        if began.elapsed_ns() > LOOK_NS_MAX {
            let words = "its processes have more open than can be looked through: end some";
            return Err(io::Error::other(words));
        }
        let looked = rustix::fs::openat(&init.processes, pid.to_string(), FOLDER, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|process| look(pid, &process, &root, &mut users));
        match looked {
            Err(error) if !is_gone(&error) => return Err(error),
            _ => {}
        }
        if users.held.len() >= HOLDERS_MAX {
            break;
        }
    }
    Ok(users)
}

/// Whether a process or thread has just ended. To who may look at all, the kernel refuses the links
/// of those alone.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH, Errno::ACCESS];
    Errno::from_io_error(error).is_some_and(|errno| gone.contains(&errno))
}

/// Who stands in a folder of a root that is no more, or of the old one.
pub(super) fn stranded(
    init: &Init,
    list: BorrowedFd<'_>,
    is_old: impl Fn(&mount_table::Mount) -> bool,
) -> io::Result<Vec<Mover>> {
    let mounts = init.mounts()?;
    let is_there = |id: u64| mounts.iter().any(|it| it.id == id && !is_old(it));
    let filters = movers::filters(&init.folder)? + 1;
    let mut found = Vec::new();
    for pid in pids(list)? {
        let process = rustix::fs::openat(&init.processes, pid.to_string(), FOLDER, Mode::empty());
        let Some(process) = gone_is_none(process)? else {
            continue;
        };
        let stood = stat_mount(&process);
        if gone_is_none(stood)?.is_none_or(is_there) {
            continue;
        }
        let folder = rustix::fs::readlinkat(&process, "cwd", Vec::new())?;
        let stands = [(pid, folder)];
        found.extend(movers::of(pid, &process, filters, &stands)?.unwrap_or_default());
    }
    Ok(found)
}

/// The mount that a process stands in.
fn stat_mount(process: &OwnedFd) -> io::Result<u64> {
    let found = rustix::fs::statx(process, "cwd", AtFlags::empty(), StatxFlags::MNT_ID)?;
    Ok(found.stx_mnt_id)
}

fn pids(list: BorrowedFd<'_>) -> io::Result<Vec<i32>> {
    let mut text = String::new();
    rustix::fs::seek(list, rustix::fs::SeekFrom::Start(0))?;
    File::from(list.try_clone_to_owned()?).read_to_string(&mut text)?;
    Ok(text.lines().filter_map(|pid| pid.parse().ok()).collect())
}

/// Adds how one process uses them: the first way in which it holds on, or where it stands.
fn look(pid: i32, process: &OwnedFd, root: &Root, users: &mut Users) -> io::Result<()> {
    let stands = match places(process, root)? {
        Places::Held(how, what) => return hold(process, how, &what, users),
        Places::Stands(stands) => stands,
    };
    if let Some((how, what)) = descriptors(process, root)? {
        return hold(process, how, &what, users);
    }
    let Some((_, first)) = stands.first() else {
        return Ok(());
    };
    match movers::of(pid, process, root.filters, &stands)? {
        Some(movers) => {
            users.movers.extend(movers);
            Ok(())
        }
        None => {
            let what = first.to_string_lossy();
            hold(process, Holding::WorkingDirectory, &what, users)
        }
    }
}

fn hold(process: &OwnedFd, how: Holding, what: &str, users: &mut Users) -> io::Result<()> {
    let (pid, name) = names(process)?;
    users.held.push(Holder {
        pid,
        name,
        how,
        what: what.chars().take(NAME_BYTES_MAX).collect(),
    });
    Ok(())
}

/// Where the threads of a process are.
enum Places {
    /// One is where it cannot be moved from.
    Held(Holding, String),
    /// These stand in folders of the root.
    Stands(Vec<(i32, CString)>),
}

fn places(process: &OwnedFd, root: &Root) -> io::Result<Places> {
    let tasks = rustix::fs::openat(process, "task", FOLDER, Mode::empty())?;
    let mut stands = Vec::new();
    for name in numbers(&tasks)? {
        let task = rustix::fs::openat(&tasks, name.as_c_str(), FOLDER, Mode::empty());
        let Some(task) = gone_is_none(task)? else {
            continue;
        };
        let (Some(namespace), Some(seen), Some(stood)) = (
            gone_is_none(follow(&task, "ns/mnt"))?,
            gone_is_none(follow(&task, "root"))?,
            gone_is_none(follow(&task, "cwd"))?,
        ) else {
            continue;
        };
        if (namespace.st_dev, namespace.st_ino) != root.namespace {
            return Ok(Places::Held(Holding::Mounts, String::new()));
        }
        if (seen.st_dev, seen.st_ino) != (root.device, root.inode) {
            return Ok(Places::Held(Holding::Root, target(&task, "root")));
        }
        if stood.st_dev == root.device && stood.st_ino != root.inode {
            let number = name.to_str().ok().and_then(|name| name.parse().ok());
            let folder = rustix::fs::readlinkat(&task, "cwd", Vec::new())?;
            stands.extend(number.map(|number| (number, folder)));
        }
    }
    Ok(Places::Stands(stands))
}

/// What it has open. One look at each: a sandbox may have very many.
fn descriptors(process: &OwnedFd, root: &Root) -> io::Result<Option<(Holding, String)>> {
    let files = rustix::fs::openat(process, "fd", FOLDER, Mode::empty())?;
    for name in numbers(&files)? {
        let Some(found) = gone_is_none(opened(&files, &name))? else {
            continue;
        };
        if found.stx_mnt_id != root.mount {
            continue;
        }
        // The mode of the link says for what it was opened: for nothing, where it is but a place.
        let link = rustix::fs::statat(&files, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW);
        let Some(link) = gone_is_none(link)? else {
            continue;
        };
        if link.st_mode & libc::S_IWUSR != 0 {
            return Ok(Some((Holding::Writes, target(&files, &name))));
        }
        if u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFDIR {
            return Ok(Some((Holding::Folder, target(&files, &name))));
        }
    }
    Ok(None)
}

/// The mount of an open file and its type. Whoever serves the file system is not asked: it may be
/// one that answers to nobody.
fn opened(files: &OwnedFd, name: &CString) -> io::Result<Statx> {
    let fields = StatxFlags::MNT_ID | StatxFlags::TYPE;
    let flags = AtFlags::STATX_DONT_SYNC;
    Ok(rustix::fs::statx(files, name.as_c_str(), flags, fields)?)
}

/// Its number in the sandbox, and its name.
fn names(process: &OwnedFd) -> io::Result<(i32, String)> {
    let status = read(process, "status")?;
    let status = String::from_utf8_lossy(&status);
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let inner = field("NSpid:").and_then(|pids| pids.split_whitespace().last()?.parse().ok());
    let name = field("Name:").unwrap_or_default().trim().to_owned();
    Ok((inner.unwrap_or_default(), name))
}

fn gone_is_none<T, E: Into<io::Error>>(done: Result<T, E>) -> io::Result<Option<T>> {
    match done.map_err(Into::into) {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn numbers(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if entry.file_name().to_bytes().iter().all(u8::is_ascii_digit) {
            found.push(entry.file_name().to_owned());
        }
    }
    Ok(found)
}

/// What a link of the kernel's leads to.
fn follow(folder: &OwnedFd, link: impl rustix::path::Arg) -> io::Result<Stat> {
    Ok(rustix::fs::statat(folder, link, AtFlags::empty())?)
}

fn target(folder: &OwnedFd, link: impl rustix::path::Arg) -> String {
    let target = rustix::fs::readlinkat(folder, link, Vec::new()).unwrap_or_default();
    target.to_string_lossy().into_owned()
}

pub(super) fn read(folder: &OwnedFd, name: impl rustix::path::Arg) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder.as_fd(), name, flags, Mode::empty())?;
    let mut content = Vec::with_capacity(TABLE_BYTES);
    File::from(file)
        .take(TABLE_BYTES_MAX)
        .read_to_end(&mut content)?;
    Ok(content)
}
