//! Seals the writable layer of a running sandbox: what it wrote until now becomes a layer that
//! nobody changes any more, and a fresh one goes on top.
//!
//! A process of its own stops the sandbox for that and looks who would notice. Nobody: a root with
//! one layer more takes the place of the old one, which is read-only from then on and with it every
//! descriptor, mapping and working directory that still leads there; how much the layer holds does
//! not matter. Somebody: the layer is copied instead, and the sandbox goes on with the old one.

mod holders;
mod mount_table;
mod movers;
mod swap;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::capture::{self, Copying, Ids, Process, Stand, Told};
use crate::disk::{self, Usage};
use crate::faults::{self, at};
use crate::sys;

pub use holders::{Holder, Holding};
use holders::{Init, Users};
use mount_table::Mount;
use movers::Movers;

/// What is done when a process of the sandbox would notice that its files were exchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenHeld {
    /// The layer is copied while the sandbox stands still.
    #[default]
    Copy,
    /// Nothing, and whoever asked is told who it is.
    Refuse,
}

/// How a layer is sealed.
#[derive(Debug, Clone)]
pub struct Order {
    /// The block device of the sandbox's disk.
    pub device: PathBuf,
    /// The number of the layer on that disk which is written to.
    pub upper: u32,
    /// The number of the layer that is made.
    pub next: u32,
    /// Host id of the sandbox's root.
    pub base: u32,
    /// What lies below, top first: where in the workshop, as a blank hangs its root up.
    pub lowers: Vec<String>,
    /// The sandbox's PID 1, as this process numbers it.
    pub init: i32,
    /// What is done when somebody would notice.
    pub when_held: WhenHeld,
    /// How the layer is copied then.
    pub copying: Copying,
    /// Another process began with it and died: bring that to its end, and nothing else.
    pub is_begun: bool,
}

/// What the process is given.
#[derive(Debug)]
pub struct Given<'a> {
    /// Trees for the workshop, each with its name there.
    pub trees: Vec<(String, OwnedFd)>,
    /// The sandbox's user namespace.
    pub user_namespace: BorrowedFd<'a>,
    /// Its mount namespace.
    pub mounts: BorrowedFd<'a>,
    /// The `cgroup.events` of it.
    pub events: BorrowedFd<'a>,
    /// The `cgroup.procs` of it.
    pub processes: BorrowedFd<'a>,
}

/// How a layer was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It is what was written to, and the sandbox has a new one.
    Exchanged,
    /// It is a copy of what is written to.
    Copied,
}

/// A layer that was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// How.
    pub how: How,
    /// How long the sandbox stood still, in microseconds.
    pub still_us: u64,
    /// What the disk held with it, and no copy of it.
    pub before: Usage,
    /// What the disk holds now.
    pub usage: Usage,
}

/// Starts it. The caller must be single-threaded.
///
/// # Errors
/// When no process can be made.
pub fn start(order: &Order, given: &Given<'_>) -> io::Result<Process> {
    let old = Cell::new(None);
    let body = |channel: &OwnedFd| {
        confine(given, channel)?;
        match order.is_begun {
            true => finish(order, given, channel),
            false => seal(order, given, channel, &old),
        }
    };
    Process::split(body, |channel, _| {
        if let Some(Err(error)) = old.take().as_ref().map(swap::close) {
            let words = format!("close the old root: {}", faults::told(&error));
            let _ = capture::tell(channel, &Told::Failed(words));
        }
    })
}

/// Seals it. What was exchanged comes to `old`, to be closed when that has been told.
fn seal(
    order: &Order,
    given: &Given<'_>,
    channel: &OwnedFd,
    old: &Cell<Option<OwnedFd>>,
) -> io::Result<Told> {
    let (disk, folder) = open_disk(order)?;
    let init = Init::open(order.init)?;
    disk::clear_number(&folder, order.next).map_err(at("make room for a layer"))?;
    let look = || holders::find(&init, given.processes).map_err(at("look who uses the files"));
    // Before it stands still, as whoever is at work may be so for long.
    let Users { held, .. } = look()?;
    if !held.is_empty() {
        return match order.when_held {
            WhenHeld::Refuse => Ok(Told::Held(held)),
            WhenHeld::Copy => {
                let upper = upper(&folder, order.upper)?;
                let before = Usage::of(&folder)?;
                let place = unfinished(&folder, order.next)?;
                let copied = order
                    .copying
                    .copy(&upper, &place, Some(given.events), channel)?;
                keep(&folder, order.next)?;
                told(How::Copied, copied.still_us, Some(before), &folder)
            }
        };
    }
    let is_alone = swap::is_alone(order, &init)?;
    if !is_alone {
        // If it cannot be done now, it takes its time when the sandbox stands still.
        let _ = swap::forget_names(&init);
    }
    let stand = Stand::order(channel, Some(given.events))?;
    let Users { held, movers } = look()?;
    let ready = held.is_empty().then(|| Movers::prepare(&movers));
    if let Some(Ok(movers)) = ready {
        add_upper(order, &folder).map_err(at("make a layer"))?;
        let begun = || capture::tell(channel, &Told::Exchanging);
        let place = swap::Place {
            init: &init,
            disk: &disk,
            is_alone,
        };
        if let Some(root) = swap::swap(order, given, &place, begun)? {
            old.set(Some(root));
            Movers::announce();
            let still_us = stand.over(channel)?;
            movers.move_all();
            return told(How::Exchanged, still_us, None, &folder);
        }
        // Somebody whom no list of processes shows: a mapping, a descriptor on its way.
        disk::clear_number(&folder, order.next).map_err(at("make room for a layer"))?;
    }
    if order.when_held == WhenHeld::Refuse {
        stand.over(channel)?;
        return Ok(Told::Held(held));
    }
    let before = Usage::of(&folder)?;
    let place = unfinished(&folder, order.next)?;
    order
        .copying
        .copy_still(&upper(&folder, order.upper)?, &place)?;
    let still_us = stand.over(channel)?;
    keep(&folder, order.next)?;
    told(How::Copied, still_us, Some(before), &folder)
}

/// Brings to its end what another process began.
fn finish(order: &Order, given: &Given<'_>, channel: &OwnedFd) -> io::Result<Told> {
    let (_, folder) = open_disk(order)?;
    let init = Init::open(order.init)?;
    let stand = Stand::order(channel, Some(given.events))?;
    let is_old = |mount: &Mount| swap::is_on(mount, order.upper);
    let stranded = holders::stranded(&init, given.processes, is_old)?;
    let movers = Movers::prepare(&stranded);
    let is_new = swap::finish(order, given, &init)?;
    Movers::announce();
    let still_us = stand.over(channel)?;
    if !is_new {
        return Ok(Told::Unchanged);
    }
    movers?.move_all();
    told(How::Exchanged, still_us, None, &folder)
}

fn open_disk(order: &Order) -> io::Result<(OwnedFd, OwnedFd)> {
    let disk = disk::mount_again(&order.device).map_err(at("mount the disk"))?;
    let folder = rustix::fs::openat(&disk, ".", disk::FOLDER, Mode::empty())?;
    Ok((disk, folder))
}

fn upper(disk: &OwnedFd, number: u32) -> io::Result<OwnedFd> {
    let name = disk::upper(number);
    Ok(rustix::fs::openat(disk, name, disk::FOLDER, Mode::empty())?)
}

/// Makes the layer that is written to from now on. Its folder is the root of the sandbox, and takes
/// after the old one.
fn add_upper(order: &Order, disk: &OwnedFd) -> io::Result<()> {
    let next = disk::add_upper(disk, order.next, order.base)?;
    let ids = Ids {
        from: order.base,
        to: order.base,
    };
    capture::inherit(upper(disk, order.upper)?, next, ids)
}

fn unfinished(disk: &OwnedFd, number: u32) -> io::Result<OwnedFd> {
    let name = disk::unfinished(number);
    rustix::fs::mkdirat(disk, name.as_str(), Mode::RWXU)?;
    Ok(rustix::fs::openat(disk, name, disk::FOLDER, Mode::empty())?)
}

/// Gives a copy its place among the layers.
fn keep(disk: &OwnedFd, number: u32) -> io::Result<()> {
    let name = disk::unfinished(number);
    let copied = format!("{name}/{}", capture::LAYER);
    rustix::fs::renameat(disk, copied, disk, disk::upper(number))?;
    Ok(rustix::fs::unlinkat(disk, name, AtFlags::REMOVEDIR)?)
}

fn told(how: How, still_us: u64, before: Option<Usage>, disk: &OwnedFd) -> io::Result<Told> {
    let usage = Usage::of(disk)?;
    Ok(Told::Sealed(Sealed {
        how,
        still_us,
        before: before.unwrap_or(usage),
        usage,
    }))
}

/// Lets go of whatever it does not need. It keeps the rights of the launcher until it enters the
/// sandbox's namespaces, and has there what the sandbox's daemon has.
fn confine(given: &Given<'_>, channel: &OwnedFd) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let _ = rustix::thread::set_name(c"barchan-seal");
    let own = [
        channel.as_raw_fd(),
        given.user_namespace.as_raw_fd(),
        given.mounts.as_raw_fd(),
        given.events.as_raw_fd(),
        given.processes.as_raw_fd(),
    ];
    let trees = given.trees.iter().map(|(_, tree)| tree.as_raw_fd());
    let kept: Vec<_> = [0, 1, 2].into_iter().chain(own).chain(trees).collect();
    sys::close_all_but(&kept)
}
