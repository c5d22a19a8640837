//! From a request to a running daemon.

mod root;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags};

use super::host::limits_pids_per_namespace;
use super::layers::{Files, Layer, Undo};
use super::slot::{Slot, Stage, Tenant};
use super::volumes::{Standing, named};
use super::{Launcher, WorkshopClient, sealed, watchdog};
use crate::enter::Orders;
use crate::faults::at;
use crate::proto::{Answer, Failure, FailureKind, IdMode};
use crate::spec::{Limits, Network, Spec};
use crate::workshop::Task;
use crate::{blank, disk, frames, log_ring, mounts};

/// A connection and the number of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) client: u32,
    pub(super) seq: u64,
}

/// A create under way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: Rc<Spec>,
    pub(super) caller: Caller,
    /// Sealed layers that its files begin with, top first.
    pub(super) lower: Vec<Rc<Layer>>,
    /// The sandbox is there already, and starts anew.
    pub(super) undo: Option<Undo>,
}

impl Job {
    /// The name by which its process and socket are known until the sandbox runs.
    pub(super) fn key(&self) -> String {
        match self.undo {
            Some(_) => format!("{}.anew", self.spec.id),
            None => self.spec.id.clone(),
        }
    }
}

/// The most trees that a spare process is given, of the descriptors that one message brings: some
/// of these are its own.
pub(super) const TREES_MAX: usize = frames::FRAME_FDS_MAX - 9;

/// Trees of the host that any sandbox may see; builds may see others.
const PUBLIC_TREES: [&str; 7] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// Size of /tmp where memory is not limited, and the least where it is, in bytes.
const TMP_BYTES: u64 = 1 << 30;
const TMP_BYTES_MIN: u64 = 64 << 20;

impl Launcher {
    pub(super) fn create(&mut self, caller: Caller, spec: Spec) {
        let admitted = self.admit(&spec).and_then(|()| Self::admit_volumes(&spec));
        if let Err(failure) = admitted {
            return self.clients.send(caller, Answer::Failed(failure));
        }
        if let Some(status) = self.status(&spec.id) {
            return self.clients.send(caller, Answer::Sandbox(status));
        }
        if self.by_id.contains_key(&spec.id) || self.waits(&spec.id) {
            let failure = Failure::new(FailureKind::Conflict, "it is being created already");
            return self.clients.send(caller, Answer::Failed(failure));
        }
        let (spec, lower) = match self.resolve(spec) {
            Ok(resolved) => resolved,
            Err(failure) => return self.clients.send(caller, Answer::Failed(failure)),
        };
        if let Err(failure) = self.order_volumes(&spec) {
            self.clients.send(caller, Answer::Failed(failure));
            return self.close_unused_volumes();
        }
        let job = Box::new(Job {
            spec: Rc::new(spec),
            caller,
            lower,
            undo: None,
        });
        if job.spec.network == Network::Host {
            return self.make_blank(Network::Host, Some(job));
        }
        self.waiting.push_back(job);
        self.assign();
    }

    fn waits(&self, id: &str) -> bool {
        self.waiting.iter().any(|job| job.spec.id == id)
    }

    fn admit(&self, spec: &Spec) -> Result<(), Failure> {
        let invalid = |words: String| Err(Failure::new(FailureKind::Invalid, words));
        if let Some(bytes) = spec.limits.disk_bytes {
            admit_size(bytes)?;
        }
        let shaped = spec.id.len() == 36
            && spec
                .id
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if !shaped {
            return invalid("the id is no UUID".to_owned());
        }
        let trees = spec.trees();
        if trees > TREES_MAX {
            return invalid(format!("{trees} layers, trees and volumes are too many"));
        }
        let foreign = spec.binds.iter().find(|bind| {
            !PUBLIC_TREES
                .iter()
                .any(|tree| bind.source == Path::new(tree))
        });
        match foreign {
            Some(bind) if spec.network == Network::Own => invalid(format!(
                "{} is no tree that sandboxes may see",
                bind.source.display()
            )),
            _ => Ok(()),
        }
    }

    /// Gives waiting creates their processes, as far as there are spares.
    pub(super) fn assign(&mut self) {
        while let Some(job) = self.waiting.pop_front() {
            let spare = |ready: bool| {
                let fits = move |slot: &Slot| slot.is_spare() && (slot.ready || !ready);
                self.slots
                    .iter()
                    .find(|(_, slot)| fits(slot))
                    .map(|(number, _)| *number)
            };
            let number = spare(true).or_else(|| spare(false));
            match number {
                Some(number) => {
                    self.by_id.insert(job.key(), number);
                    if let Some(slot) = self.slots.get_mut(&number) {
                        slot.claim(job);
                    }
                    self.go_on(number);
                }
                None => self.make_blank(Network::Own, Some(job)),
            }
        }
    }

    /// Takes a claimed slot one step further, if it has what the step needs.
    pub(super) fn go_on(&mut self, number: u32) {
        let Some(mut slot) = self.slots.remove(&number) else {
            return;
        };
        if let Stage::Claimed(job) = &slot.stage {
            self.by_id.insert(job.key(), number);
            let wanted = job
                .spec
                .limits
                .disk_bytes
                .unwrap_or(self.options.disk_bytes);
            let has_disk = job.spec.upper.is_some() || job.undo.is_some();
            let needs_disk = self.makes_disks() && !has_disk;
            if needs_disk && slot.disk.as_ref().is_none_or(|(_, bytes)| *bytes != wanted) {
                if slot.ordered_bytes != Some(wanted) {
                    self.order_disk(number, &mut slot, wanted);
                }
            } else if slot.ready {
                match self.volumes_of(&job.spec) {
                    Ok(Standing::Ready) => self.send_in(&mut slot),
                    Ok(Standing::Awaited) => {}
                    Err(failure) => self.refuse_claimed(&mut slot, failure),
                }
            }
        }
        self.slots.insert(number, slot);
    }

    /// Refuses whom a slot was claimed for.
    fn refuse_claimed(&mut self, slot: &mut Slot, failure: Failure) {
        if let Stage::Claimed(job) = std::mem::replace(&mut slot.stage, Stage::Spent) {
            self.by_id.remove(&job.key());
            self.sockets.remove(&job.key());
            self.refuse(&job, failure);
        }
        slot.kill();
    }

    pub(super) fn refuse_slot(&mut self, number: u32, failure: Failure) {
        if let Some(mut slot) = self.slots.remove(&number) {
            self.refuse_claimed(&mut slot, failure);
            self.slots.insert(number, slot);
        }
    }

    pub(super) fn order_disk(&mut self, number: u32, slot: &mut Slot, bytes: u64) {
        let task = Task::Disk {
            bytes,
            owner: slot.blank.base,
        };
        match self.workshop.ask(&task, &[]) {
            Ok(()) => {
                slot.ordered_bytes = Some(bytes);
                self.tasks.push_back(WorkshopClient::Slot(number));
            }
            Err(error) => {
                self.note_failure(&format!("the launcher's workshop is gone: {error}"));
                slot.kill();
            }
        }
    }

    /// Gives the process its orders.
    fn send_in(&mut self, slot: &mut Slot) {
        let Stage::Claimed(job) = &slot.stage else {
            return;
        };
        let ids = slot.blank.user_namespace.as_fd();
        let ids = (self.ids == IdMode::OwnRange).then_some(ids);
        let volumes = match self.volume_trees(&job.spec, ids) {
            Ok(volumes) => volumes,
            Err(failure) => return self.refuse_claimed(slot, failure),
        };
        let Stage::Claimed(job) = std::mem::replace(&mut slot.stage, Stage::Spent) else {
            return;
        };
        match self.furnish(slot, &job, volumes) {
            Ok(tenant) => {
                let names = named(&job.spec).map(|(name, _)| name.to_owned());
                slot.mounted = Some((tenant.id.clone(), names.collect()));
                slot.stage = Stage::Entering(job, tenant);
            }
            Err(error) => {
                slot.stage = Stage::Claimed(job);
                let kind = match error.kind() {
                    io::ErrorKind::Unsupported => FailureKind::Unsupported,
                    _ => FailureKind::Start,
                };
                self.refuse_claimed(slot, Failure::new(kind, error.to_string()));
            }
        }
    }

    /// Writes limits, collects what the sandbox is made of, and sends it all in.
    fn furnish(&mut self, slot: &mut Slot, job: &Job, volumes: Vec<OwnedFd>) -> io::Result<Tenant> {
        let spec = job.spec.as_ref();
        let mut unenforced = slot
            .blank
            .group
            .limit(&spec.limits)
            .map_err(at("set limits"))?;
        let (_, kernel_memory, kernel_pids, _) = self.groups.can();
        if !kernel_pids && limits_pids_per_namespace() {
            unenforced.retain(|name| *name != "pids");
        }
        let listener = self
            .sockets
            .listen(&job.key())
            .map_err(at("listen for the daemon"))?;
        let boot = sealed::content("boot", &serde_json::to_vec(&spec.boot)?);
        let boot = boot.map_err(at("make the daemon's boot file"))?;
        let log = log_file().map_err(at("make a log"))?;
        let mut root = self.root_of(slot, job)?;
        let ids = (self.ids == IdMode::OwnRange).then(|| slot.blank.user_namespace.as_fd());
        let trees = &mut root.trees;
        trees.extend(host_trees(spec, ids)?);
        trees.extend(volumes);
        if let Some(gpus) = spec.gpus {
            trees.push(self.devices_with(gpus)?);
        }
        unenforced.extend(self.unenforced_volumes(spec));
        let default_bytes = self.options.disk_bytes;
        let orders = Orders {
            pid_max: spec.limits.pids.filter(|_| !kernel_pids),
            data_max_bytes: spec.limits.memory_bytes.filter(|_| !kernel_memory),
            layers: root.layers,
            disks: root.disks,
            sealed: root.sealed,
            upper: root.number,
            ..orders(spec, root.in_memory.then_some(default_bytes))
        };
        let mut fds = vec![listener.as_fd(), boot.as_fd(), log.as_fd()];
        fds.extend(trees.iter().map(AsFd::as_fd));
        blank::order(&slot.blank, &orders, &fds).map_err(at("tell the spare process"))?;
        let mut files = Files::of(job);
        slot.layers = root.held;
        files.upper = root.upper;
        Ok(Tenant {
            id: spec.id.clone(),
            spec: Rc::clone(&job.spec),
            log,
            unenforced: unenforced.into_iter().map(str::to_owned).collect(),
            paused: false,
            upper: root.build,
            layer: root.layer,
            files,
            is_copied: false,
            is_still: false,
            thawed_ms: None,
            memory: spec
                .limits
                .memory_bytes
                .zip(watchdog::namespace_of(slot.blank.pid)),
            starved: false,
            condemned: false,
            parking: None,
            deleting: Vec::new(),
        })
    }

    pub(super) fn refuse_start(&mut self, job: &Job, words: &str) {
        self.refuse(job, Failure::new(FailureKind::Start, words));
    }

    /// Tells a caller that its sandbox does not come about, which belongs to no slot any more.
    pub(super) fn refuse(&mut self, job: &Job, failure: Failure) {
        if job.undo.is_some() {
            return self.undo_failed(job, failure);
        }
        self.drop_volumes(&job.spec.id);
        self.close_unused_volumes();
        self.clients.send(job.caller, Answer::Failed(failure));
    }
}

/// Refuses a disk or volume that cannot be, before anything is made for it.
pub(super) fn admit_size(bytes: u64) -> Result<(), Failure> {
    let checked = disk::check_size(bytes);
    checked.map_err(|error| Failure::new(FailureKind::Unsupported, error.to_string()))
}

/// Mounts of the trees of the host that a sandbox sees, under its own ids.
fn host_trees(spec: &Spec, ids: Option<BorrowedFd<'_>>) -> io::Result<Vec<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let copies = spec.binds.iter().map(|bind| {
        let tree = rustix::fs::openat(CWD, &bind.source, flags, Mode::empty())
            .map_err(|errno| at("open a tree of the host")(errno.into()))?;
        let copy = mounts::sealed_copy(tree.as_fd(), ids);
        copy.map_err(at("copy the mount of a host tree"))
    });
    copies.collect()
}

/// The orders that a spec gives on a host whose control groups do the limiting.
fn orders(spec: &Spec, tmpfs_bytes: Option<u64>) -> Orders {
    let Limits {
        memory_bytes,
        disk_bytes,
        ..
    } = spec.limits;
    Orders {
        layers: 0,
        disks: 0,
        sealed: Vec::new(),
        upper: 0,
        is_lasting: spec.upper.is_some(),
        bind_targets: spec.binds.iter().map(|bind| bind.target.clone()).collect(),
        volume_targets: spec.volumes.iter().map(|it| it.target.clone()).collect(),
        own_devices: spec.gpus.is_some(),
        tmpfs_bytes: tmpfs_bytes.map(|default| disk_bytes.unwrap_or(default)),
        tmp_bytes: memory_bytes.map_or(TMP_BYTES, |memory| (memory / 2).max(TMP_BYTES_MIN)),
        pid_max: None,
        data_max_bytes: None,
        own_network: spec.network == Network::Own,
    }
}

/// A log ring that its writer cannot make larger.
fn log_file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("log", flags)?);
    file.set_len(log_ring::FILE_BYTES)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}
