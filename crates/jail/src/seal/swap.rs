//! Puts another root in the place of a sandbox's own, from outside and while it stands still.
//!
//! The mounts inside move over to the new root, so whoever stands in one of them notices nothing;
//! then the new root takes the old one's place for every process at once. The table of mounts tells
//! how far that came, so when a process dies in the midst of it, another one brings it to its end.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::mount::{FsPickFlags, MountAttrFlags, UnmountFlags};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType, set_capabilities};

use super::holders::Init;
use super::mount_table::Mount;
use super::{Given, Order};
use crate::enter::root::{self, Writable};
use crate::faults::at;
use crate::{disk, mounts, privileges, sys};

/// Where a root is exchanged.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) init: &'a Init,
    /// A mount of the sandbox's disk.
    pub(super) disk: &'a OwnedFd,
    /// See [`is_alone`].
    pub(super) is_alone: bool,
}

/// Exchanges the root, and gives back the old one; `None` when somebody writes to it, and all is as
/// it was. `begun` is called before anything changes: from then on this must be brought to its end,
/// by [`finish`] if need be.
pub(super) fn swap(
    order: &Order,
    given: &Given<'_>,
    place: &Place<'_>,
    begun: impl FnOnce() -> io::Result<()>,
) -> io::Result<Option<OwnedFd>> {
    let (init, disk) = (place.init, place.disk);
    let old = init.open_root()?;
    enter(given).map_err(at("enter the sandbox"))?;
    let new = assemble(order, given, disk).map_err(at("make another root"))?;
    enter_mounts(given.mounts).map_err(at("enter the sandbox's mounts"))?;
    begun()?;
    let ended = match place.is_alone {
        true => sys::set_mount_read_only(old.as_fd(), true),
        false => set_read_only(&old, true),
    };
    match ended {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(None),
        done => done.map_err(at("end the writing to the old root"))?,
    }
    mounts::attach(new.as_fd(), old.as_fd()).map_err(|errno| at("attach it")(errno.into()))?;
    take_over(init, &old, &new)?;
    Ok(Some(old))
}

/// Whether nobody comes to the files of the root but by the one mount that all processes have as
/// their root. Then it is enough to make that mount read-only, which costs nothing, and the file
/// system can wait until the sandbox goes on: see [`close`].
pub(super) fn is_alone(order: &Order, init: &Init) -> io::Result<bool> {
    let upper = own(order.upper);
    let mounts = init.mounts()?;
    let found = mounts.iter().filter(|it| it.upper.as_ref() == Some(&upper));
    Ok(found.count() == 1)
}

/// Makes an old root's file system read-only, which is behind all mounts that there may ever have
/// been of it. That takes time for each name of it that the kernel knows.
pub(super) fn close(old: &OwnedFd) -> io::Result<()> {
    // The mount is read-only already, and hangs nowhere.
    reconfigure(old, true)
}

/// Brings to its end what another process began; whether there was anything.
pub(super) fn finish(order: &Order, given: &Given<'_>, init: &Init) -> io::Result<bool> {
    let root = init.open_root()?;
    enter(given).map_err(at("enter the sandbox"))?;
    let mounts = init.mounts()?;
    let find = |number| mounts.iter().find(|it| is_on(it, number));
    match (find(order.upper), find(order.next)) {
        // It had no more than closed the old root, if that.
        (Some(_), None) => set_read_only(&root, false).map(|()| false),
        (Some(old), Some(new)) if new.parent == old.id => {
            // Who comes in later sees what lies on top.
            let new = rustix::fs::open("/", PLACE, Mode::empty())?;
            rustix::process::fchdir(&root)?;
            rustix::process::chroot(".")?;
            take_over(init, &root, &new).map(|()| true)
        }
        (Some(_), Some(_)) => {
            let old = rustix::fs::open("/", PLACE, Mode::empty())?;
            let_go(&old).map(|()| true)
        }
        (None, Some(_)) => Ok(true),
        (None, None) => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether a mount is a root that writes to this layer of the sandbox's own disk.
pub(super) fn is_on(mount: &Mount, number: u32) -> bool {
    mount.place.as_os_str() == "/" && mount.upper.as_ref() == Some(&own(number))
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Becomes the sandbox's root, with the rights of its daemon.
fn enter(given: &Given<'_>) -> io::Result<()> {
    let kind = LinkNameSpaceType::User;
    rustix::thread::move_into_link_name_space(given.user_namespace, Some(kind))?;
    sys::become_ids(0, 0, Some(&[])).map_err(|(step, error)| at(step)(error))?;
    // To become somebody else took away that it ends with the launcher.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let kept = privileges::DAEMON;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    enter_mounts(given.mounts)
}

fn enter_mounts(mounts: BorrowedFd<'_>) -> io::Result<()> {
    let kind = LinkNameSpaceType::Mount;
    Ok(rustix::thread::move_into_link_name_space(
        mounts,
        Some(kind),
    )?)
}

/// Where a layer of the sandbox's own disk hangs in the workshop.
fn own(number: u32) -> String {
    format!("{}/{}", root::DISK, disk::upper(number))
}

/// Makes the new root in a mount namespace of its own, where the parts of it have a place to hang.
fn assemble(order: &Order, given: &Given<'_>, disk: &OwnedFd) -> io::Result<OwnedFd> {
    sys::enter_new(libc::CLONE_NEWNS)?;
    let place = rustix::fs::open("/", PLACE, Mode::empty())?;
    let proc = mounts::open_inside(place.as_fd(), Path::new("proc"))?;
    let workshop = mounts::make("tmpfs", &[("size", "1m")], MountAttrFlags::empty())?;
    mounts::attach(workshop.as_fd(), proc.as_fd())?;
    rustix::process::fchdir(&workshop)?;
    let hang = |tree: &OwnedFd, name: &str| {
        root::hang(tree.as_fd(), name).map_err(|failed| io::Error::other(failed.to_string()))
    };
    hang(disk, root::DISK)?;
    for (name, tree) in &given.trees {
        hang(tree, name)?;
    }
    let lowers = std::iter::once(own(order.upper)).chain(order.lowers.iter().cloned());
    let writable = Writable {
        upper: own(order.next),
        work: format!("{}/{}", root::DISK, disk::work(order.next)),
        is_lasting: false,
    };
    root::overlay(&lowers.collect::<Vec<_>>(), Some(&writable))
}

/// Makes a root read-only, whatever mount or descriptor one comes to it by: the file system, which
/// is behind all mounts of it, and the mount, which nobody inside can undo once it hangs nowhere.
/// Fails with EBUSY while somebody writes.
fn set_read_only(root: &OwnedFd, is_read_only: bool) -> io::Result<()> {
    reconfigure(root, is_read_only)?;
    sys::set_mount_read_only(root.as_fd(), is_read_only)
}

fn reconfigure(root: &OwnedFd, is_read_only: bool) -> io::Result<()> {
    let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
    let context = rustix::mount::fspick(root, "", flags)?;
    let word = if is_read_only { "ro" } else { "rw" };
    rustix::mount::fsconfig_set_flag(context.as_fd(), word)?;
    Ok(rustix::mount::fsconfig_reconfigure(context.as_fd())?)
}

/// Has the kernel forget the names that nobody uses. It does so whenever a file system is
/// reconfigured, which takes seconds for a million of them: better now, while the sandbox runs,
/// than when it stands still for [`swap`].
pub(super) fn forget_names(init: &Init) -> io::Result<()> {
    let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
    let context = rustix::mount::fspick(init.open_root()?, "", flags)?;
    Ok(rustix::mount::fsconfig_reconfigure(context.as_fd())?)
}

/// Gives the new root, which hangs on the old one, the place of that.
fn take_over(init: &Init, old: &OwnedFd, new: &OwnedFd) -> io::Result<()> {
    let (old_id, new_id) = (mount_id(old)?, mount_id(new)?);
    let mounts = init.mounts()?;
    let children = mounts
        .iter()
        .filter(|it| it.parent == old_id && it.id != new_id);
    // What another mount covers nobody sees: only what lies on top has to move.
    let places: BTreeSet<&Path> = children.map(|it| it.place.as_path()).collect();
    for place in places {
        let moved = mounts::open_inside(old.as_fd(), place).and_then(|mount| {
            let target = mounts::open_inside(new.as_fd(), place)?;
            mounts::attach(mount.as_fd(), target.as_fd())
        });
        moved.map_err(|errno| at("move a mount to another root")(errno.into()))?;
    }
    rustix::process::fchdir(new)?;
    rustix::process::pivot_root(".", ".").map_err(|errno| at("exchange")(errno.into()))?;
    let_go(old)
}

fn let_go(old: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(old)?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)
        .map_err(|errno| at("let go of the old root")(errno.into()))
}

/// The number of a mount in tables of mounts.
fn mount_id(mount: &OwnedFd) -> io::Result<u64> {
    let flags = AtFlags::EMPTY_PATH;
    Ok(rustix::fs::statx(mount, "", flags, StatxFlags::MNT_ID)?.stx_mnt_id)
}
