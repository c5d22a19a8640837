//! The disks that layers lie on, and what of them nobody needs any more.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::Mode;

use crate::capture::{self, Given, Ids, Process, Told, Work};
use crate::disk::{self, Usage};
use crate::enter::root;
use crate::faults::at;
use crate::ids::Map;
use crate::launcher::Launcher;
use crate::launcher::slot::Slot;
use crate::launcher::snapshots::Task;
use crate::merge::Source;
use crate::mounts;
use crate::proto::{Failure, FailureKind};

/// A layer on a disk, sealed or written to. Whoever has one keeps it there.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Layer {
    /// Which disk.
    disk: u32,
    /// Its number there.
    pub(in super::super) number: u32,
    /// Host id of the root whose files they are.
    base: u32,
}

impl Layer {
    /// Which mount it is found by: layers of one disk and one host id of a root share it.
    pub(super) fn mount(&self) -> (u32, u32) {
        (self.disk, self.base)
    }

    /// Host id of the root whose files they are.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Whether both lie on one disk.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.disk == other.disk
    }
}

/// The disks on which layers were sealed, by the slot of the sandbox that they were made for.
#[derive(Debug, Default)]
pub(in super::super) struct Disks {
    all: BTreeMap<u32, Disk>,
    /// One whose layers are being removed.
    discarding: Option<u32>,
}

#[derive(Debug)]
struct Disk {
    device: PathBuf,
    file: Option<OwnedFd>,
    /// Its own folder, through a mount that hangs nowhere.
    folder: OwnedFd,
    layers: Vec<Rc<Layer>>,
    /// The highest number that was given to a layer on it.
    last: u32,
    /// What it held when a layer was sealed last.
    usage: Usage,
    /// Layers that are to be removed.
    doomed: Vec<u32>,
}

/// Where sealed layers hang in a workshop, and the further trees that must hang there for it.
#[derive(Debug, Default)]
pub(in super::super) struct Lowers {
    pub(in super::super) names: Vec<String>,
    pub(in super::super) disks: Vec<OwnedFd>,
}

impl Disks {
    /// What a sandbox writes to, which has a place among layers from now on.
    pub(super) fn upper_of(&mut self, number: u32, slot: &mut Slot) -> io::Result<Rc<Layer>> {
        let known = slot.tenant().and_then(|tenant| tenant.files.upper.clone());
        if let Some(upper) = known {
            return Ok(upper);
        }
        let upper = self.adopt(number, slot)?;
        if let Some(tenant) = slot.tenant() {
            tenant.files.upper = Some(Rc::clone(&upper));
        }
        Ok(upper)
    }

    /// Takes over a sandbox's disk, so that it lives as long as a layer on it. What is written to
    /// is its first one.
    fn adopt(&mut self, number: u32, slot: &mut Slot) -> io::Result<Rc<Layer>> {
        let (device, usage) = slot.device.clone().ok_or(io::ErrorKind::Unsupported)?;
        let mount = disk::mount_again(&device).map_err(at("mount the disk"))?;
        let folder = rustix::fs::openat(&mount, ".", disk::FOLDER, Mode::empty())?;
        let first = Rc::new(Layer {
            disk: number,
            number: 0,
            base: slot.blank.base,
        });
        let disk = Disk {
            device,
            file: slot.disk_file.take(),
            folder,
            layers: vec![Rc::clone(&first)],
            last: 0,
            usage,
            doomed: Vec::new(),
        };
        self.all.insert(number, disk);
        Ok(first)
    }

    /// Gives a number to a layer that is going to be made on the disk of another.
    pub(super) fn reserve(&mut self, beside: &Layer) -> io::Result<u32> {
        let disk = self
            .all
            .get_mut(&beside.disk)
            .ok_or(io::ErrorKind::NotFound)?;
        disk.last += 1;
        Ok(disk.last)
    }

    /// Keeps a layer that was made on the disk of another, for a root with this host id.
    pub(super) fn keep(&mut self, beside: &Layer, number: u32, base: u32) -> io::Result<Rc<Layer>> {
        let disk = self
            .all
            .get_mut(&beside.disk)
            .ok_or(io::ErrorKind::NotFound)?;
        let layer = Rc::new(Layer {
            disk: beside.disk,
            number,
            base,
        });
        disk.layers.push(Rc::clone(&layer));
        Ok(layer)
    }

    /// Has removed what is left of a layer that did not come about on the disk of another.
    pub(super) fn doom(&mut self, beside: &Layer, number: u32) {
        if let Some(disk) = self.all.get_mut(&beside.disk) {
            disk.doomed.push(number);
        }
    }

    /// Notes what the disk of a layer holds now. By how much that is more than last time, and what
    /// will be compared with next time.
    pub(super) fn grown(&mut self, layer: &Layer, now: Usage, after: Usage) -> Usage {
        let Some(disk) = self.all.get_mut(&layer.disk) else {
            return Usage::default();
        };
        let before = std::mem::replace(&mut disk.usage, after);
        Usage {
            bytes: now.bytes.saturating_sub(before.bytes),
            entries: now.entries.saturating_sub(before.entries),
        }
    }

    pub(in super::super) fn device(&self, layer: &Layer) -> io::Result<&Path> {
        let disk = self.all.get(&layer.disk).ok_or(io::ErrorKind::NotFound)?;
        Ok(&disk.device)
    }

    /// A further mount of the disk of a layer.
    pub(in super::super) fn mount(&self, layer: &Layer) -> io::Result<OwnedFd> {
        disk::mount_again(self.device(layer)?).map_err(at("mount the disk"))
    }

    /// A layer's folder.
    pub(in super::super) fn open(&self, layer: &Layer) -> io::Result<OwnedFd> {
        let disk = self.all.get(&layer.disk).ok_or(io::ErrorKind::NotFound)?;
        let name = disk::upper(layer.number);
        Ok(rustix::fs::openat(
            &disk.folder,
            name,
            disk::FOLDER,
            Mode::empty(),
        )?)
    }

    /// Makes an empty layer to be written to beside another one, for a root with this host id.
    pub(in super::super) fn add_upper(
        &mut self,
        beside: &Layer,
        owner: u32,
    ) -> io::Result<Rc<Layer>> {
        let number = self.reserve(beside)?;
        let disk = self.all.get(&beside.disk).ok_or(io::ErrorKind::NotFound)?;
        disk::add_upper(&disk.folder, number, owner)?;
        self.keep(beside, number, owner)
    }

    /// Gives the folder of a layer that is written to what that of a sealed one has: it is the root
    /// of a sandbox with this host id.
    pub(in super::super) fn inherit(
        &self,
        sealed: &Layer,
        upper: &OwnedFd,
        base: u32,
    ) -> io::Result<()> {
        let ids = Ids {
            from: sealed.base,
            to: base,
        };
        capture::inherit(self.open(sealed)?, upper, ids)
    }

    /// Layers as they are merged, top first.
    pub(in super::super) fn sources(&self, layers: &[Rc<Layer>]) -> io::Result<Vec<Source>> {
        let source = |layer: &Rc<Layer>| {
            Ok(Source {
                folder: self.open(layer)?,
                base: layer.base,
            })
        };
        layers.iter().map(source).collect()
    }

    /// The folder of the disk that a layer lies on.
    pub(super) fn folder(&self, layer: &Layer) -> io::Result<BorrowedFd<'_>> {
        let disk = self.all.get(&layer.disk).ok_or(io::ErrorKind::NotFound)?;
        Ok(disk.folder.as_fd())
    }

    /// Refuses what would have to begin another layer beside this one where there is no room.
    pub(super) fn admit_another(&self, beside: &Layer) -> Result<(), Failure> {
        let room = self.folder(beside).and_then(disk::has_room);
        let words = match room {
            Ok(true) => return Ok(()),
            Ok(false) => "its disk is full: remove something in it first".to_owned(),
            Err(error) => format!("look at its disk: {error}"),
        };
        Err(Failure::new(FailureKind::Layer, words))
    }

    /// Where layers hang for a root with this host id, beside a disk of its own.
    pub(in super::super) fn lowers(
        &self,
        layers: &[Rc<Layer>],
        own: Option<&Layer>,
        base: u32,
    ) -> io::Result<Lowers> {
        let own = own.map(|own| own.disk);
        let mut found = Lowers::default();
        let mut others: Vec<(u32, u32)> = Vec::new();
        for layer in layers {
            let folder = if own == Some(layer.disk) && layer.base == base {
                root::DISK.to_owned()
            } else {
                let other = (layer.disk, layer.base);
                let place = others.iter().position(|it| *it == other);
                root::other_disk(place.unwrap_or_else(|| {
                    others.push(other);
                    others.len() - 1
                }))
            };
            found
                .names
                .push(format!("{folder}/{}", disk::upper(layer.number)));
        }
        for (disk, from) in others {
            let disk = self.all.get(&disk).ok_or(io::ErrorKind::NotFound)?;
            let mount = disk::mount_again(&disk.device).map_err(at("mount a disk"))?;
            let ids = Map::between(from, base).map_err(at("map ids of a disk"))?;
            let sealed = mounts::seal(mount.as_fd(), Some(ids.as_fd()));
            sealed.map_err(at("map the files of a disk"))?;
            found.disks.push(mount);
        }
        Ok(found)
    }
}

impl Launcher {
    /// Lets go of disks and removes layers that nobody has any more.
    pub(in super::super) fn sweep_layers(&mut self) {
        let mut unused = Vec::new();
        for (number, disk) in &mut self.disks.all {
            let is_held = |layer: &Rc<Layer>| Rc::strong_count(layer) > 1;
            if !disk.layers.iter().any(is_held) && self.disks.discarding != Some(*number) {
                unused.push(*number);
                continue;
            }
            let gone = disk.layers.extract_if(.., |layer| !is_held(layer));
            disk.doomed.extend(gone.map(|layer| layer.number));
        }
        for number in unused {
            if let Some(disk) = self.disks.all.remove(&number) {
                self.let_go(std::iter::once(disk.folder).chain(disk.file));
            }
        }
        self.discard_next();
    }

    /// Starts the removal of layers of one disk, if no other is at work.
    fn discard_next(&mut self) {
        if self.disks.discarding.is_some() {
            return;
        }
        let mut waiting = self.disks.all.iter_mut();
        let Some((number, disk)) = waiting.find(|(_, disk)| !disk.doomed.is_empty()) else {
            return;
        };
        let doomed = std::mem::take(&mut disk.doomed);
        let process = start_discarding(disk.folder.as_fd(), &doomed);
        let number = *number;
        self.disks.discarding = Some(number);
        let employed =
            process.and_then(|process| self.employ(process, Task::Discard(doomed.clone())));
        if let Err(error) = employed {
            self.discarded(doomed);
            self.note_failure(&format!("remove layers: {error}"));
        }
    }

    /// A removal is over; what is left of it is tried again with the next.
    pub(in super::super) fn discarding_ended(&mut self, numbers: Vec<u32>, last: Option<Told>) {
        match last {
            Some(Told::Removed) => self.discarded(Vec::new()),
            _ => self.discarded(numbers),
        }
        if let Some(Told::Failed(words)) = last {
            self.note_failure(&format!("remove layers: {words}"));
            return;
        }
        self.sweep_layers();
    }

    fn discarded(&mut self, left: Vec<u32>) {
        let number = self.disks.discarding.take();
        let disk = number.and_then(|number| self.disks.all.get_mut(&number));
        if let Some(disk) = disk {
            disk.doomed.extend(left);
        }
    }
}

fn start_discarding(folder: BorrowedFd<'_>, doomed: &[u32]) -> io::Result<Process> {
    let given = Given {
        shelf: folder,
        layer: None,
        events: None,
        connection: None,
        stack: &[],
    };
    Process::start(&Work::Discard(doomed.to_vec()), &given)
}

#[cfg(test)]
mod tests {
    use super::super::Files;
    use super::*;
    use crate::launcher::create::TREES_MAX;

    #[test]
    fn no_layer_is_admitted_whose_mounts_one_message_could_not_bring() {
        let layers = |count: u32, base: fn(u32) -> u32| {
            let layer = |number| {
                Rc::new(Layer {
                    disk: number / 2,
                    number,
                    base: base(number),
                })
            };
            (0..count).map(layer).collect()
        };
        let most = u32::try_from(TREES_MAX).unwrap();
        for (lower, trees, is_admitted) in [
            (layers(most, |number| number), 0, false),
            (layers(most - 1, |number| number), 0, true),
            (layers(most - 1, |number| number), 1, false),
            (layers(most, |_| 1), 0, true),
            (layers(most, |_| 1), TREES_MAX / 2, false),
        ] {
            let files = Files {
                lower,
                ..Files::default()
            };
            assert_eq!(files.admit_one_more(trees).is_ok(), is_admitted);
        }
    }
}
