//! What the root of a new sandbox is made of: something to write to, and layers below.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, Gid, Mode, Uid};

use super::Job;
use crate::disk;
use crate::faults::at;
use crate::launcher::Launcher;
use crate::launcher::layers::Layer;
use crate::launcher::slot::Slot;
use crate::mounts;
use crate::proto::IdMode;

/// The parts of a root.
#[derive(Debug, Default)]
pub(super) struct Root {
    /// The folder of a build, which is kept.
    pub(super) build: Option<OwnedFd>,
    /// The folder that is written to, where it is not made inside.
    pub(super) layer: Option<OwnedFd>,
    /// Its place among layers, if it has one.
    pub(super) upper: Option<Rc<Layer>>,
    /// Its number on the disk.
    pub(super) number: u32,
    /// What is written to is made inside, in memory.
    pub(super) in_memory: bool,
    /// Where sealed layers hang in the workshop, top first, and on how many other disks they lie.
    pub(super) sealed: Vec<String>,
    pub(super) disks: usize,
    /// All layers that are mounted.
    pub(super) held: Vec<Rc<Layer>>,
    /// How many layers lie below all that.
    pub(super) layers: usize,
    /// Mounts: what is written to, other disks, how names are found, layers of the image.
    pub(super) trees: Vec<OwnedFd>,
}

impl Launcher {
    /// Collects what a sandbox's root is made of.
    pub(super) fn root_of(&mut self, slot: &mut Slot, job: &Job) -> io::Result<Root> {
        let base = slot.blank.base;
        let mut root = self.writable(slot, job)?;
        let lowers = self.disks.lowers(&job.lower, root.upper.as_deref(), base)?;
        if let (Some(top), Some(layer)) = (job.lower.first(), &root.layer) {
            let inherited = self.disks.inherit(top, layer, base);
            inherited.map_err(at("take over the root's attributes"))?;
        }
        (root.sealed, root.disks) = (lowers.names, lowers.disks.len());
        root.held = job.lower.iter().chain(&root.upper).cloned().collect();
        root.trees.extend(lowers.disks);
        let ids = (self.ids == IdMode::OwnRange).then(|| slot.blank.user_namespace.as_fd());
        for layer in self.image_layers(&job.spec) {
            let layer = self.state.beneath(&layer)?;
            let copy = mounts::sealed_copy(layer.as_fd(), ids);
            root.trees
                .push(copy.map_err(at("copy the mount of a layer"))?);
            root.layers += 1;
        }
        Ok(root)
    }

    fn writable(&mut self, slot: &mut Slot, job: &Job) -> io::Result<Root> {
        if let Some(path) = &job.spec.upper {
            let build = self.open_upper(path, slot.blank.base);
            let build = build.map_err(at("open the writable layer"))?;
            let copy = mounts::copy(build.as_fd());
            let copy = copy.map_err(at("copy the mount of the writable layer"))?;
            return Ok(Root {
                build: Some(build),
                trees: vec![copy],
                ..Root::default()
            });
        }
        if let Some(undo) = &job.undo {
            let upper = self.disks.add_upper(&undo.before, slot.blank.base);
            let upper = upper.map_err(at("make a layer"))?;
            let mount = self.disks.mount(&upper)?;
            return Ok(Root {
                layer: Some(self.disks.open(&upper)?),
                number: upper.number,
                upper: Some(upper),
                trees: vec![mount],
                ..Root::default()
            });
        }
        let Some((mount, _)) = slot.disk.take() else {
            if !job.lower.is_empty() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            return Ok(Root {
                in_memory: true,
                ..Root::default()
            });
        };
        let layer = rustix::fs::openat(&mount, disk::UPPER, disk::FOLDER, Mode::empty());
        let layer = layer.map_err(|errno| at("open the disk")(errno.into()))?;
        Ok(Root {
            layer: Some(layer),
            trees: vec![mount],
            ..Root::default()
        })
    }

    /// The folder of a build's writable layer, with what overlayfs needs in it.
    fn open_upper(&self, path: &Path, owner: u32) -> io::Result<OwnedFd> {
        let folder = self.state.beneath(path)?;
        disk::add_folders(&folder, owner)?;
        // The sandbox's root must be able to pass through it.
        let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
        rustix::fs::chownat(&folder, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
        Ok(folder)
    }
}
