//! Watches a path for changes. The kernel keeps what happened until it is taken, up to a limit of
//! its own; beyond that it says that events were lost, and so do we.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_wire::execd::watch::{Change, ChangeKind};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags, add_watch, remove_watch};
use rustix::io::Errno;

use super::expand::escape;
use super::info::look;
use super::spelling::Spelling;
use crate::fault::{Fault, Kind};
use crate::limits::WATCHED_DIRECTORIES_MAX;

const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

/// Most that is told of what a new directory held when it was found.
const FOUND_MAX: usize = 4096;

/// A path that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    root: PathBuf,
    root_watch: i32,
    is_recursive: bool,
    spelling: Spelling,
    paths: BTreeMap<i32, PathBuf>,
}

impl Watch {
    /// Begins to watch; with everything below, if asked for.
    ///
    /// # Errors
    /// When there is nothing there, it may not be read, or there are too many directories.
    pub(crate) fn open(root: &Path, is_recursive: bool, spelling: Spelling) -> Result<Self, Fault> {
        let refused = |errno| Fault::of_path(errno, "watch", escape(root.as_os_str().as_bytes()));
        look(root)?;
        let inotify =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|_| {
                Fault::new(
                    Kind::Busy,
                    "too many paths are watched; end another watch first",
                )
            })?;
        let root_watch = add_watch(&inotify, root, EVENTS).map_err(refused)?;
        let mut watch = Self {
            inotify,
            root: root.to_owned(),
            root_watch,
            is_recursive,
            spelling,
            paths: BTreeMap::from([(root_watch, root.to_owned())]),
        };
        if is_recursive && watch.add_below(root, &mut |_, _| {}).is_err() {
            let most = WATCHED_DIRECTORIES_MAX;
            let message = format!("more than {most} directories, or one that cannot be watched");
            return Err(Fault::new(Kind::TooLarge, message));
        }
        Ok(watch)
    }

    /// Becomes readable when something happened.
    pub(crate) fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    /// An event about the watch itself.
    pub(crate) fn own(&self, kind: ChangeKind) -> Change {
        self.change(kind, &self.root, false, None)
    }

    /// What the kernel's events tell.
    pub(crate) fn changes(&mut self, bytes: &[u8]) -> Vec<Change> {
        let mut changes = Vec::new();
        for event in events(bytes) {
            self.event(&event, &mut changes);
        }
        changes
    }

    fn event(&mut self, event: &Event<'_>, changes: &mut Vec<Change>) {
        let (watch, flags) = (event.watch, event.flags);
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(self.own(ChangeKind::Overflow));
            if self.is_recursive {
                // Directories that nobody told of have to be found again.
                let root = self.root.clone();
                let _ = self.add_below(&root, &mut |_, _| {});
            }
            return;
        }
        let Some(above) = self.paths.get(&watch).cloned() else {
            return;
        };
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED;
        if flags.intersects(gone) {
            if watch == self.root_watch {
                changes.push(self.own(ChangeKind::Gone));
            }
            if flags.contains(ReadFlags::IGNORED) {
                self.paths.remove(&watch);
            }
            return;
        }
        let path = event.name.map_or(above.clone(), |name| above.join(name));
        let directory = flags.contains(ReadFlags::ISDIR);
        let moved = flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO);
        for (flag, kind) in [
            (ReadFlags::CREATE, ChangeKind::Create),
            (ReadFlags::MODIFY, ChangeKind::Modify),
            (ReadFlags::CLOSE_WRITE, ChangeKind::Close),
            (ReadFlags::ATTRIB, ChangeKind::Attributes),
            (ReadFlags::DELETE, ChangeKind::Delete),
            (ReadFlags::MOVED_FROM, ChangeKind::MoveFrom),
            (ReadFlags::MOVED_TO, ChangeKind::MoveTo),
        ] {
            if flags.contains(flag) {
                changes.push(self.change(kind, &path, directory, moved.then_some(event.cookie)));
            }
        }
        if self.is_recursive && directory {
            self.follow(flags, &path, changes);
        }
    }

    /// Keeps up with directories that come and go.
    fn follow(&mut self, flags: ReadFlags, path: &Path, changes: &mut Vec<Change>) {
        if flags.contains(ReadFlags::MOVED_FROM) {
            let left = self
                .paths
                .extract_if(.., |_, watched| watched.starts_with(path));
            for (watch, _) in left.collect::<Vec<_>>() {
                let _ = remove_watch(&self.inotify, watch);
            }
        }
        if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            let mut found = Vec::new();
            let added = self.add(path).and_then(|()| {
                self.add_below(path, &mut |path, directory| {
                    if found.len() <= FOUND_MAX {
                        found.push((path.to_owned(), directory));
                    }
                })
            });
            // What was in it before it was watched; some of it may be told twice.
            if found.len() > FOUND_MAX {
                changes.push(self.own(ChangeKind::Overflow));
            } else if flags.contains(ReadFlags::CREATE) {
                let found = found.iter();
                changes.extend(found.map(|(path, directory)| {
                    self.change(ChangeKind::Create, path, *directory, None)
                }));
            }
            if added.is_err() && look(path).is_ok() {
                changes.push(self.change(ChangeKind::Unwatched, path, true, None));
            }
        }
    }

    fn add(&mut self, path: &Path) -> Result<(), Errno> {
        if self.paths.len() >= WATCHED_DIRECTORIES_MAX {
            return Err(Errno::NOSPC);
        }
        let watch = add_watch(&self.inotify, path, EVENTS | WatchFlags::ONLYDIR)?;
        self.paths.insert(watch, path.to_owned());
        Ok(())
    }

    /// Watches every directory below one, and tells what is there. What vanishes meanwhile or may
    /// not be read is passed over.
    fn add_below(&mut self, root: &Path, found: &mut dyn FnMut(&Path, bool)) -> Result<(), Errno> {
        let mut open = vec![root.to_owned()];
        while let Some(directory) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
                found(&path, is_directory);
                if !is_directory {
                    continue;
                }
                match self.add(&path) {
                    Ok(()) => open.push(path),
                    Err(Errno::NOSPC) => return Err(Errno::NOSPC),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    fn change(
        &self,
        kind: ChangeKind,
        path: &Path,
        directory: bool,
        cookie: Option<u32>,
    ) -> Change {
        Change {
            kind,
            path: self.spelling.write(path),
            directory,
            cookie,
        }
    }
}

/// One event of the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Event<'a> {
    watch: i32,
    flags: ReadFlags,
    cookie: u32,
    /// The name in the watched directory, if it is about one.
    name: Option<&'a OsStr>,
}

/// The events in what was read: four numbers each, and a name filled up with NULs.
fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let number = |at: usize| {
            let four = head.get(at..at + 4).and_then(|four| four.try_into().ok());
            u32::from_ne_bytes(four.unwrap_or_default())
        };
        let Some((name, next)) = behind.split_at_checked(number(12) as usize) else {
            break;
        };
        let name = name
            .split(|byte| *byte == 0)
            .next()
            .filter(|name| !name.is_empty());
        all.push(Event {
            watch: number(0) as i32,
            flags: ReadFlags::from_bits_retain(number(4)),
            cookie: number(8),
            name: name.map(OsStr::from_bytes),
        });
        rest = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_one_by_one() {
        let event = |numbers: [u32; 4], name: &[u8]| {
            let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
            numbers.chain(name.iter().copied()).collect::<Vec<u8>>()
        };
        let bytes = [
            event([1, 0x4000_0100, 0, 16], b"name\0\0\0\0\0\0\0\0\0\0\0\0"),
            event([u32::MAX, 0x4000, 7, 0], b""),
            event([2, 2, 0, 400], b"cut"),
        ]
        .concat();
        let all = events(&bytes);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].name, Some(OsStr::new("name")));
        assert!(all[0].flags.contains(ReadFlags::CREATE | ReadFlags::ISDIR));
        assert_eq!((all[1].watch, all[1].cookie, all[1].name), (-1, 7, None));
        assert!(all[1].flags.contains(ReadFlags::QUEUE_OVERFLOW));
    }
}
