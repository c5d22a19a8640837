//! What somebody in a sandbox does to the tree, for the tests to do at random.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;
use proptest::strategy::Strategy;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, Uid,
    XattrFlags, fsetxattr, mknodat, openat,
};
use rustix::io::{Errno, pwrite, write};

use super::FOLDER;
use super::view::NAMES;
use crate::tree;

/// What somebody in a sandbox may do to a path. The kernel refuses much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Write,
    Append,
    Truncate,
    Sparse,
    Unlink,
    RemoveAll,
    Rename,
    Exchange,
    Mkdir,
    Recreate,
    Symlink,
    Link,
    Fifo,
    Socket,
    Device,
    Chmod,
    Chown,
    Note,
    Unnote,
    Touch,
    AccessList,
    DefaultList,
    Capability,
}

use Verb::*;

/// Those that make and remove names are more frequent.
const VERBS: [Verb; 33] = [
    Write,
    Write,
    Write,
    Append,
    Truncate,
    Sparse,
    Unlink,
    Unlink,
    RemoveAll,
    RemoveAll,
    Rename,
    Rename,
    Rename,
    Exchange,
    Mkdir,
    Mkdir,
    Mkdir,
    Recreate,
    Recreate,
    Symlink,
    Link,
    Link,
    Fifo,
    Socket,
    Device,
    Chmod,
    Chown,
    Note,
    Unnote,
    Touch,
    AccessList,
    DefaultList,
    Capability,
];

/// A verb, its path and another one as numbers of names, and a number.
pub(super) type Op = (Verb, Vec<usize>, Vec<usize>, u16);

pub(super) fn op() -> impl Strategy<Value = Op> {
    let path = || vec(0..NAMES.len(), 1..4);
    (select(&VERBS), path(), path(), any::<u16>())
}

const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Where something is done.
struct Place<'a> {
    root: &'a OwnedFd,
    folder: OwnedFd,
    name: &'static [u8],
    number: u16,
}

/// Does it, if the kernel lets it.
pub(super) fn apply(root: &OwnedFd, op: &Op) -> Result<(), Errno> {
    let (verb, path, other, number) = op;
    let place = Place {
        root,
        folder: around(root, path)?,
        name: NAMES[*path.last().ok_or(Errno::INVAL)?],
        number: *number,
    };
    match verb {
        Write | Append | Truncate | Sparse | Capability => place.fill(*verb),
        Rename | Exchange | Link => {
            let target = NAMES[*other.last().ok_or(Errno::INVAL)?];
            place.join(*verb, &around(root, other)?, target)
        }
        Chmod | Chown | Note | Unnote | Touch | AccessList | DefaultList => place.describe(*verb),
        _ => place.name(*verb),
    }
}

impl Place<'_> {
    /// Opens what is there, and now and then the root itself.
    fn readable(&self) -> Result<OwnedFd, Errno> {
        match self.number % 13 {
            0 => rustix::io::dup(self.root),
            _ => openat(&self.folder, self.name, FILE, Mode::empty()),
        }
    }

    fn fill(&self, verb: Verb) -> Result<(), Errno> {
        let writable = |further| {
            let flags = FILE | OFlags::WRONLY | further;
            openat(&self.folder, self.name, flags, Mode::from_raw_mode(0o640))
        };
        let bytes = vec![self.number as u8; usize::from(self.number % 5000)];
        let at = u64::from(self.number);
        match verb {
            Append => write(writable(OFlags::APPEND)?, &bytes).map(drop),
            Truncate => rustix::fs::ftruncate(writable(OFlags::empty())?, at),
            Sparse => pwrite(writable(OFlags::CREATE)?, &bytes, at * 4).map(drop),
            Capability => {
                let mut value = [0; 20];
                (value[3], value[4]) = (2, self.number as u8);
                let (file, name) = (writable(OFlags::empty())?, c"security.capability");
                fsetxattr(file, name, &value, XattrFlags::empty())
            }
            _ => write(writable(OFlags::CREATE | OFlags::TRUNC)?, &bytes).map(drop),
        }
    }

    fn join(&self, verb: Verb, there: &OwnedFd, target: &[u8]) -> Result<(), Errno> {
        let (folder, name) = (&self.folder, self.name);
        match verb {
            Rename => rustix::fs::renameat(folder, name, there, target),
            Link => rustix::fs::linkat(folder, name, there, target, AtFlags::empty()),
            _ => rustix::fs::renameat_with(folder, name, there, target, RenameFlags::EXCHANGE),
        }
    }

    fn name(&self, verb: Verb) -> Result<(), Errno> {
        let (folder, name, mode) = (&self.folder, self.name, Mode::from_raw_mode(0o640));
        match verb {
            Unlink => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
            RemoveAll => {
                let _ = tree::remove(folder, Path::new(OsStr::from_bytes(name)));
                Ok(())
            }
            Recreate => {
                self.name(RemoveAll)?;
                self.name(Mkdir)
            }
            Symlink => {
                let targets = [&b"a"[..], b"..", b"/", b"../c\xff/b", b"/etc/passwd"];
                let target = targets[usize::from(self.number) % targets.len()];
                rustix::fs::symlinkat(target, folder, name)
            }
            Fifo => mknodat(folder, name, FileType::Fifo, mode, 0),
            Socket => mknodat(folder, name, FileType::Socket, mode, 0),
            Device => {
                // Of no driver: nobody opens it, as nobody may in a sandbox.
                let number = rustix::fs::makedev(0, 77);
                mknodat(folder, name, FileType::CharacterDevice, mode, number)
            }
            _ => rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)),
        }
    }

    fn describe(&self, verb: Verb) -> Result<(), Errno> {
        let (number, flags) = (u32::from(self.number), AtFlags::SYMLINK_NOFOLLOW);
        let set =
            |name, value: &[u8]| fsetxattr(self.readable()?, name, value, XattrFlags::empty());
        match verb {
            Chmod => rustix::fs::fchmod(self.readable()?, Mode::from_raw_mode(number & 0o7777)),
            Chown => {
                let (user, group) = (Uid::from_raw(number % 60_000), Gid::from_raw(number / 3));
                rustix::fs::chownat(&self.folder, self.name, Some(user), Some(group), flags)
            }
            Note => {
                let names = [
                    c"user.note",
                    c"user.overlay.opaque",
                    c"user.overlay.whiteout",
                ];
                set(names[number as usize % names.len()], &number.to_le_bytes())
            }
            Unnote => rustix::fs::fremovexattr(self.readable()?, c"user.note"),
            Touch => {
                let at = Timespec {
                    tv_sec: i64::from(number) * 7,
                    tv_nsec: i64::from(number) * 11,
                };
                let times = Timestamps {
                    last_access: at,
                    last_modification: at,
                };
                match number % 13 {
                    0 => rustix::fs::futimens(self.root, &times),
                    _ => rustix::fs::utimensat(&self.folder, self.name, &times, flags),
                }
            }
            AccessList => set(c"system.posix_acl_access", &access_list(self.number)),
            _ => set(c"system.posix_acl_default", &access_list(self.number)),
        }
    }
}

/// Opens the folder around a path, which no link leads out of.
fn around(root: &OwnedFd, path: &[usize]) -> Result<OwnedFd, Errno> {
    let (_, above) = path.split_last().ok_or(Errno::INVAL)?;
    let mut names = vec![&b"."[..]];
    names.extend(above.iter().map(|it| NAMES[*it]));
    let flags = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(root, names.join(&b'/'), FOLDER, Mode::empty(), flags)
}

fn access_list(number: u16) -> Vec<u8> {
    let entry = |tag: u16, bits: u16, id: u32| {
        [
            &tag.to_le_bytes()[..],
            &bits.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    };
    let (bits, id) = (number & 7, u32::from(number));
    let entries = [
        entry(0x01, 7, u32::MAX),
        entry(0x02, bits, id),
        entry(0x04, 5, u32::MAX),
        entry(0x08, bits, id + 1),
        entry(0x10, 7, u32::MAX),
        entry(0x20, bits, u32::MAX),
    ];
    [&[2, 0, 0, 0][..], &entries.concat()].concat()
}
