//! How ids inside sandboxes map to ids of the host.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::process::Command;

use rustix::process::{Pid, WaitOptions};

use crate::faults::at;
use crate::frames;
use crate::proto::IdMode;
use crate::sys::{self, Cloned};

/// Ids per sandbox: what a Linux distribution expects to exist.
pub const RANGE: u32 = 65_536;
/// First host id of sandboxes, above what accounts, subordinate ids and container tools use.
pub(crate) const FIRST: u32 = 1_000_000_000;
/// How many sandboxes can have a range of their own at once.
const SLOTS: u32 = 32_768;

/// A sandbox's ids: 0 to `count` inside are `base` and up outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map {
    /// Host id (as the launcher's namespace numbers it) of the sandbox's root.
    pub base: u32,
    /// How many.
    pub count: u32,
    /// The root's id lies apart from the rest, as it does in a user's own namespace; the kernel
    /// wants one line for each piece.
    pub split: bool,
}

impl Map {
    /// The map of the sandbox in this slot.
    #[must_use]
    pub fn of_slot(mode: IdMode, slot: u32) -> Self {
        let (base, count) = match mode {
            IdMode::OwnRange => (FIRST + (slot % SLOTS) * RANGE, RANGE),
            IdMode::SharedRange => (0, RANGE),
            IdMode::Single => (0, 1),
        };
        Self {
            base,
            count,
            split: mode == IdMode::SharedRange,
        }
    }

    /// The map of the egress program: one id, that of no sandbox where there are enough.
    #[must_use]
    pub fn of_egress(mode: IdMode) -> Self {
        let base = match mode {
            IdMode::OwnRange => FIRST + SLOTS * RANGE,
            IdMode::SharedRange => RANGE - 1,
            IdMode::Single => 0,
        };
        Self {
            base,
            count: 1,
            split: false,
        }
    }

    /// Writes the map of a process in a new user namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn write(&self, pid: Pid) -> io::Result<()> {
        let Self { base, count, split } = *self;
        let line = match split {
            true => format!("0 {base} 1\n1 {} {}", base + 1, count - 1),
            false => format!("0 {base} {count}"),
        };
        let pid = pid.as_raw_nonzero();
        for file in ["gid_map", "uid_map"] {
            let path = format!("/proc/{pid}/{file}");
            fs::write(&path, &line).map_err(at(&format!("map ids by {file}")))?;
        }
        Ok(())
    }
}

impl Map {
    /// A user namespace by which files of one sandbox appear as those of another: a mount with it
    /// has id `to` where the file system has `from`.
    ///
    /// # Errors
    /// When no process or namespace can be made.
    pub fn between(from: u32, to: u32) -> io::Result<File> {
        let (ours, theirs) = frames::pair()?;
        match sys::clone_process(libc::CLONE_NEWUSER as u64, None)? {
            Cloned::Child => {
                drop(ours);
                let _ = frames::receive(&theirs, true);
                sys::exit_now(0)
            }
            Cloned::Parent { pid, .. } => {
                drop(theirs);
                let number = pid.as_raw_nonzero();
                let line = format!("{from} {to} {RANGE}");
                let made = ["gid_map", "uid_map"]
                    .iter()
                    .try_for_each(|file| fs::write(format!("/proc/{number}/{file}"), &line))
                    .and_then(|()| File::open(format!("/proc/{number}/ns/user")));
                drop(ours);
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                made
            }
        }
    }
}

/// Settles how this launcher maps ids. A launcher without privileges moves into a user namespace of
/// its own, where it is root over its subordinate ids if it has any, else over itself alone; from
/// then on it works as a privileged one does.
///
/// # Errors
/// When the host allows no user namespaces.
pub fn settle() -> io::Result<IdMode> {
    if rustix::process::geteuid().is_root() && can_mount() {
        return Ok(IdMode::OwnRange);
    }
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let ranges = match (
        subordinate("/etc/subuid", uid),
        subordinate("/etc/subgid", uid),
    ) {
        (Some(users), Some(groups)) => Some((users, groups)),
        _ => None,
    };
    if let Some((users, groups)) = ranges
        && with_ranges(uid, gid, users, groups)?
    {
        return Ok(IdMode::SharedRange);
    }
    enter_namespace()?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    Ok(IdMode::Single)
}

/// Whether this root is the host's and not that of a container without rights.
fn can_mount() -> bool {
    let sets = rustix::thread::capabilities(None);
    let whole = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all_ids = whole.split_whitespace().eq(["0", "0", "4294967295"]);
    let needed = rustix::thread::CapabilitySet::SYS_ADMIN;
    all_ids && sets.is_ok_and(|sets| sets.effective.contains(needed))
}

fn enter_namespace() -> io::Result<()> {
    sys::enter_new(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).map_err(|error| {
        let words = "this host lets ordinary users make no user namespaces: `barchan doctor` says \
                     which setting decides it";
        io::Error::new(error.kind(), format!("{words} ({error})"))
    })
}

/// Enters a namespace in which the subordinate ids are mapped by the host's set-uid helpers. A
/// second process calls them from outside, as they demand. `false` when this host has no such
/// helpers; the caller is then where it was.
fn with_ranges(uid: u32, gid: u32, users: u32, groups: u32) -> io::Result<bool> {
    if !has_helpers() {
        return Ok(false);
    }
    let target = rustix::process::getpid().as_raw_nonzero().to_string();
    let (ours, theirs) = frames::pair()?;
    match sys::clone_process(0, None)? {
        Cloned::Child => {
            drop(ours);
            let told = matches!(frames::receive(&theirs, true), Ok(Some(_)));
            let map = |program: &str, own: u32, first: u32| {
                Command::new(program)
                    .arg(&target)
                    .args(["0", &own.to_string(), "1"])
                    .args(["1", &first.to_string(), &(RANGE - 1).to_string()])
                    .status()
                    .is_ok_and(|status| status.success())
            };
            let done = told && map("newuidmap", uid, users) && map("newgidmap", gid, groups);
            sys::exit_now(i32::from(!done))
        }
        Cloned::Parent { pid, .. } => {
            enter_namespace()?;
            frames::send(ours.as_fd(), b"go", &[])?;
            let ended = rustix::process::waitpid(Some(pid), WaitOptions::empty())?;
            if ended.is_none_or(|(_, status)| status.exit_status() != Some(0)) {
                return Err(io::Error::other(
                    "newuidmap or newgidmap refused the ranges of /etc/subuid and /etc/subgid",
                ));
            }
            sys::become_ids(0, 0, Some(&[])).map_err(|(_, error)| error)?;
            Ok(true)
        }
    }
}

/// Whether this host grants a user enough subordinate ids, and has the helpers that map them.
#[must_use]
pub fn are_granted(uid: u32) -> bool {
    let granted = |file| subordinate(file, uid).is_some();
    has_helpers() && granted("/etc/subuid") && granted("/etc/subgid")
}

/// Whether the set-uid helpers that map subordinate ids are installed.
fn has_helpers() -> bool {
    ["newuidmap", "newgidmap"].iter().all(|name| {
        let folders = ["/usr/bin", "/bin", "/usr/local/bin"];
        folders
            .iter()
            .any(|folder| fs::metadata(format!("{folder}/{name}")).is_ok())
    })
}

/// The first subordinate id of a user who has enough of them, by name or by number.
fn subordinate(file: &str, uid: u32) -> Option<u32> {
    let name = user_name(uid);
    let text = fs::read_to_string(file).ok()?;
    text.lines()
        .find_map(|line| first_of(line, name.as_deref(), uid))
}

/// The start of the range in a line of /etc/subuid, if it is this user's and large enough.
fn first_of(line: &str, name: Option<&str>, uid: u32) -> Option<u32> {
    let mut fields = line.trim().split(':');
    let (owner, first, count) = (fields.next()?, fields.next()?, fields.next()?);
    let mine = Some(owner) == name || owner.parse() == Ok(uid);
    let count: u32 = count.parse().ok()?;
    (mine && count >= RANGE - 1).then(|| first.parse().ok())?
}

fn user_name(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_belongs_to_its_owner_and_must_be_whole() {
        for (line, wanted) in [
            ("ann:100000:65536", Some(100_000)),
            ("1001:200000:65535", Some(200_000)),
            ("ann:100000:1000", None),
            ("bob:100000:65536", None),
            ("ann:x:65536", None),
            ("", None),
        ] {
            assert_eq!(first_of(line, Some("ann"), 1001), wanted, "{line}");
        }
    }

    #[test]
    fn ranges_of_two_slots_do_not_meet() {
        let (one, two) = (
            Map::of_slot(IdMode::OwnRange, 7),
            Map::of_slot(IdMode::OwnRange, 8),
        );
        assert_eq!(one.base + one.count, two.base);
        let last = Map::of_slot(IdMode::OwnRange, SLOTS - 1);
        assert!(last.base.checked_add(last.count).is_some());
        let egress = Map::of_egress(IdMode::OwnRange);
        assert_eq!(last.base + last.count, egress.base);
    }
}
