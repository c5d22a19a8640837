//! The resident launcher: creator, parent and reaper of all sandboxes of one state directory.
//!
//! One thread, one loop, no waiting: requests come in over a socket, spares are made when there is
//! nothing else to do, ends of processes are seen by their pidfds. It outlives the server; when it
//! dies itself, the kernel takes every sandbox with it.

mod clients;
mod create;
mod deliveries;
mod egress;
mod gpus;
mod host;
mod inodes;
mod layers;
mod options;
mod sealed;
mod slot;
mod snapshots;
mod sockets;
mod spares;
mod state;
mod verbs;
mod volumes;
mod watchdog;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::cgroup::{self, Group, Hierarchies};
use crate::faults::at;
use crate::host_paths::HostPaths;
use crate::ids;
use crate::proto::{Hello, IdMode, VERSION};
use crate::workshop::Workshop;
use crate::{blank, disk, mounts, sys};

use clients::Clients;
use create::{Caller, Job};
use egress::Egress;
use host::limits_pids_per_namespace;
pub(crate) use host::now_ms;
use layers::Disks;
pub use options::Options;
use slot::{Ended, Slot};
use snapshots::Snapshots;
use sockets::Sockets;
use state::StateDirectory;
use volumes::Volumes;

/// How long nothing must happen before a missing spare is made: about what a create and the first
/// command take, so that the making does not take the processor from them.
const REFILL_QUIET_MS: i64 = 8;
/// How long the launcher stays without callers and sandboxes.
const IDLE_MS: i64 = 5_000;

/// What an epoll event is about: a kind in the high half, a number in the low half.
mod token {
    pub(super) const LISTENER: u64 = 0;
    pub(super) const WORKSHOP: u64 = 1;
    pub(super) const CLIENT: u64 = 2;
    pub(super) const CONTROL: u64 = 3;
    pub(super) const PROCESS: u64 = 4;
    pub(super) const COPIER: u64 = 5;
    pub(super) const COPIER_END: u64 = 6;
    pub(super) const WORD_TO_END: u64 = 7;
    pub(super) const EGRESS_END: u64 = 8;

    pub(super) fn of(kind: u64, number: u32) -> u64 {
        kind << 32 | u64::from(number)
    }
}

/// All the launcher knows.
#[derive(Debug)]
struct Launcher {
    options: Options,
    state: StateDirectory,
    epoll: OwnedFd,
    ids: IdMode,
    groups: Hierarchies,
    /// The prepared /dev.
    devices: OwnedFd,
    /// The sealed in-sandbox daemon.
    program: OwnedFd,
    /// Where the daemons are reached.
    sockets: Sockets,
    /// What carries sandboxes' traffic, or why nothing does.
    egress: Result<Egress, String>,
    workshop: Workshop,
    /// Who waits for the workshop's answers, in order.
    tasks: VecDeque<WorkshopClient>,
    clients: Clients,
    host_paths: HostPaths,
    volumes: Volumes,
    snapshots: Snapshots,
    disks: Disks,
    slots: BTreeMap<u32, Slot>,
    next_slot: u32,
    /// Living and starting sandboxes by id.
    by_id: HashMap<String, u32>,
    /// Those that ended and were not deleted yet, and those that are paused to disk.
    ended: HashMap<String, Ended>,
    /// Creates that wait for a spare.
    waiting: VecDeque<Box<Job>>,
    /// Groups whose last process the kernel has not let go yet.
    stale_groups: Vec<Group>,
    /// Spares that failed in a row, and the last reason.
    failures: u32,
    last_failure: String,
    /// It was told to end.
    leaving: bool,
}

/// Who waits for an answer of the workshop.
#[derive(Debug)]
enum WorkshopClient {
    /// The slot that gets a disk.
    Slot(u32),
    /// Nobody: a disk was let go.
    Nobody,
    /// Everybody who waits for a named volume, above all the sandbox that it is made for.
    Volume(volumes::Order),
    /// The caller who had a tree settled.
    Caller(Caller),
}

/// Runs until there is nothing left to do: no caller and no sandbox.
///
/// # Errors
/// When the host lacks what a launcher needs, or the state directory is in use.
pub fn run(options: &Options) -> io::Result<()> {
    // A signal to the server's terminal or group must not end the sandboxes.
    let _ = rustix::process::setsid();
    // Nothing is open yet but what callers had: their locks and pipes are not for sandboxes' lives.
    sys::close_from(3);
    let word_to_end = sys::hear_word_to_end()?;
    host::raise_open_files()?;
    let program =
        sealed::program("barchan-execd", &options.execd).map_err(at("seal the daemon"))?;
    let state = StateDirectory::open(&options.state)?;
    let ids = ids::settle().map_err(at("settle how ids map"))?;
    check_disks(options, ids)?;
    let groups = cgroup::probe(state.id());
    groups.remove_orphans();
    crate::volumes::recover().map_err(at("recover the volumes"))?;
    let workshop = Workshop::start(Path::new(state::DISKS)).map_err(at("start the workshop"))?;
    let devices = mounts::device_tree(blank::STAGING, &[]).map_err(at("make the devices"))?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    watch(&epoll, &workshop.channel, token::of(token::WORKSHOP, 0))?;
    let clients = Clients::listen(state::SOCKET)?;
    watch(&epoll, clients.listener(), token::of(token::LISTENER, 0))?;
    watch(&epoll, &word_to_end, token::of(token::WORD_TO_END, 0))?;
    let sockets = Sockets::new().map_err(at("make a folder of sockets"))?;
    let egress = Egress::prepare(options.egress.as_deref(), ids, &sockets);
    let mut launcher = Launcher {
        options: options.clone(),
        state,
        epoll,
        ids,
        groups,
        devices,
        program,
        sockets,
        egress,
        workshop,
        tasks: VecDeque::new(),
        clients,
        host_paths: HostPaths::new(&options.host_paths, &std::env::current_dir()?),
        volumes: Volumes::default(),
        snapshots: Snapshots::default(),
        disks: Disks::default(),
        slots: BTreeMap::new(),
        next_slot: rustix::process::getpid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
            * 64,
        by_id: HashMap::new(),
        ended: HashMap::new(),
        waiting: VecDeque::new(),
        stale_groups: Vec::new(),
        failures: 0,
        last_failure: String::new(),
        leaving: false,
    };
    launcher.sweep_volumes();
    launcher.sweep_snapshots();
    launcher.keep_egress();
    let served = launcher.serve();
    launcher.leave();
    served
}

/// Refuses to begin with disks of a size with which every create would fail.
fn check_disks(options: &Options, ids: IdMode) -> io::Result<()> {
    let tried = match ids {
        IdMode::OwnRange => disk::try_size(Path::new(state::DISKS), options.disk_bytes),
        _ => disk::check_size(options.disk_bytes),
    };
    match tried {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(at("limits.default.disk")(error))
        }
        // Whatever else there is may be mended before the first one is made.
        _ => Ok(()),
    }
}

/// Wakes the loop when `fd` is readable or closed.
fn watch(epoll: &OwnedFd, fd: impl AsFd, token: u64) -> io::Result<()> {
    Ok(epoll::add(
        epoll,
        fd,
        EventData::new_u64(token),
        EventFlags::IN,
    )?)
}

impl Launcher {
    fn serve(&mut self) -> io::Result<()> {
        let mut busy_ms = now_ms();
        let mut looked_ms = busy_ms;
        let mut moved_ms = busy_ms;
        while !self.leaving {
            let quiet = self.hear_events()?;
            let now_ms = now_ms();
            if !quiet || !self.is_idle() {
                busy_ms = now_ms;
            }
            if quiet {
                self.refill();
            }
            if now_ms - looked_ms >= watchdog::LOOK_MS {
                looked_ms = now_ms;
                self.watch_memory();
                self.watch_snapshots();
                self.watch_comparing();
                self.remove_stale_groups();
                self.keep_egress();
            }
            if now_ms - moved_ms >= inodes::LOOK_MS {
                moved_ms = now_ms;
                self.move_inodes();
            }
            self.leaving |= now_ms - busy_ms >= IDLE_MS;
        }
        Ok(())
    }

    /// Waits for something to happen and handles it; `true` when nothing did.
    fn hear_events(&mut self) -> io::Result<bool> {
        let wait_ms = self.patience_ms();
        let span = rustix::event::Timespec {
            tv_sec: wait_ms / 1000,
            tv_nsec: wait_ms % 1000 * 1_000_000,
        };
        let mut events = Vec::with_capacity(64);
        let space = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, space, Some(&span)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            self.handle(event.data.u64());
        }
        Ok(events.is_empty())
    }

    /// How long the loop may sleep. Requests go first and spares are made in the gaps: a short gap
    /// will do while few are left, else it must be quiet for longer.
    fn patience_ms(&self) -> i64 {
        let spares = self.spares();
        match (self.wants_spare(), self.stale_groups.is_empty()) {
            (true, _) if spares * 2 < self.options.blanks => 0,
            (true, _) => REFILL_QUIET_MS,
            (false, true) if !self.is_watching() => 1000,
            (false, _) => watchdog::LOOK_MS,
        }
    }

    fn handle(&mut self, token: u64) {
        let (kind, number) = (token >> 32, token as u32);
        match kind {
            token::LISTENER => self.clients.accept(&self.epoll),
            token::CLIENT => {
                for call in self.clients.read(number) {
                    self.answer(
                        Caller {
                            client: number,
                            seq: call.seq,
                        },
                        call.request,
                    );
                }
            }
            token::CONTROL => self.hear(number),
            token::PROCESS => self.process_ended(number),
            token::COPIER => self.hear_copier(number),
            token::COPIER_END => self.copier_ended(number),
            // Sandboxes would end with it anyway, but their control groups would stay.
            token::WORD_TO_END => self.leaving = true,
            token::EGRESS_END => self.egress_ended(),
            _ => self.hear_workshop(),
        }
    }

    fn hello(&self) -> Hello {
        let (cpu, memory, pids, pause) = self.groups.can();
        Hello {
            version: VERSION,
            pid: rustix::process::getpid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs(),
            sockets: self.sockets.path(),
            ids: self.ids,
            cpu,
            memory,
            pids: pids || limits_pids_per_namespace(),
            disk: true,
            pause,
            volume: self.makes_disks(),
            gpus: self.gpus(),
            host_paths: self.host_paths.allowed().to_vec(),
            no_way_out: self.egress.as_ref().err().cloned(),
        }
    }

    fn is_idle(&self) -> bool {
        let is_unused = self.by_id.is_empty() && self.waiting.is_empty() && !self.has_parked();
        self.clients.is_empty() && is_unused && self.snapshots.is_empty()
    }

    /// Whether writable layers are file systems of their own rather than tmpfs.
    fn makes_disks(&self) -> bool {
        self.ids == IdMode::OwnRange
    }

    fn remove_stale_groups(&mut self) {
        self.stale_groups.retain(|group| !group.remove());
    }

    /// Ends what is left and takes its traces away.
    fn leave(&mut self) {
        // All at once, since each takes its time to end.
        self.slots.values().for_each(Slot::kill);
        for slot in std::mem::take(&mut self.slots).into_values() {
            slot.dissolve();
        }
        self.close_unused_volumes();
        self.workshop.close();
        self.groups.remove_orphans();
        self.groups.remove();
        self.state.remove_socket();
    }
}
