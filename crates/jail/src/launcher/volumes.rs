//! Which volumes sandboxes have mounted, and what becomes of named ones.
//!
//! A named volume is opened by the workshop for the first sandbox that wants it, shared by all who
//! come while it is open, and closed with the last. The kernel takes it down whoever dies.

mod catalog;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use super::create::admit_size;
use super::slot::{Slot, Stage};
use super::{Launcher, WorkshopClient};
use crate::host_paths::open_or_make;
use crate::mounts;
use crate::proto::{Failure, FailureKind, IdMode};
use crate::spec::{NewVolume, Source, Spec, Volume};
use crate::volumes::{self, DATA, New, Opened};
use crate::workshop::Task;

/// Longest name of a named volume, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Most volumes of one sandbox.
pub(super) const PER_SANDBOX_MAX: usize = 32;

/// The named volumes that matter at present.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// Those that are open (`Some`) or being opened.
    open: HashMap<String, Option<Opened>>,
    /// Those that were made for a sandbox which does not run yet: they go if it never does.
    made_for: HashMap<String, String>,
    /// Those that go with a sandbox, by its id.
    owned: HashMap<String, Vec<String>>,
    /// How many were retired.
    retired: u64,
}

/// A volume that is being opened.
#[derive(Debug)]
pub(super) struct Order {
    name: String,
    /// For whom it is made, if there is none.
    sandbox: String,
    goes_with_sandbox: bool,
}

/// Whether what a sandbox mounts is at hand.
pub(super) enum Standing {
    Ready,
    /// The workshop is about to answer.
    Awaited,
}

impl Launcher {
    /// Refuses what is no volume, whoever asks.
    pub(super) fn admit_volumes(spec: &Spec) -> Result<(), Failure> {
        let invalid = |words: String| Err(Failure::new(FailureKind::Invalid, words));
        if spec.volumes.len() > PER_SANDBOX_MAX {
            return invalid(format!("more than {PER_SANDBOX_MAX} volumes"));
        }
        for volume in &spec.volumes {
            let shown = volume.target.display();
            let below = volume.target.strip_prefix("/").map(is_plain);
            if !below.unwrap_or(false) {
                return invalid(format!("{shown} is no place for a volume"));
            }
            if let Source::Named { name, path, .. } = &volume.source
                && !(is_name(name) && (path.as_os_str().is_empty() || is_plain(path)))
            {
                return invalid(format!("the volume at {shown} has no proper name or path"));
            }
        }
        Ok(())
    }

    /// Has the named volumes of a sandbox opened that are not open yet.
    pub(super) fn order_volumes(&mut self, spec: &Spec) -> Result<(), Failure> {
        let is_absent = |(name, new): &(&str, Option<NewVolume>)| {
            new.is_none() && !self.volumes.open.contains_key(*name) && !volumes::exists(name)
        };
        // Before the first of them is made.
        if let Some((name, _)) = named(spec).find(is_absent) {
            let words = format!("there is no volume {name}");
            return Err(Failure::new(FailureKind::VolumeNotFound, words));
        }
        for (name, new) in named(spec) {
            if self.volumes.open.contains_key(name) {
                continue;
            }
            if let Some(new) = new.filter(|_| self.makes_disks()) {
                admit_size(new.bytes)?;
            }
            let goes_with_sandbox = new.is_some_and(|new| new.goes_with_sandbox);
            let new = new.map(|new| New {
                bytes: new.bytes,
                owner: new.goes_with_sandbox.then(|| spec.id.clone()),
            });
            let task = Task::Volume {
                name: name.to_owned(),
                new,
                with_disks: self.makes_disks(),
            };
            let asked = self.workshop.ask(&task, &[]);
            asked.map_err(|error| Failure::new(FailureKind::VolumeUnusable, error.to_string()))?;
            self.volumes.open.insert(name.to_owned(), None);
            self.tasks.push_back(WorkshopClient::Volume(Order {
                name: name.to_owned(),
                sandbox: spec.id.clone(),
                goes_with_sandbox,
            }));
        }
        Ok(())
    }

    /// Whether all named volumes of a sandbox are open.
    pub(super) fn volumes_of(&mut self, spec: &Spec) -> Result<Standing, Failure> {
        let is_open = |(name, _): (&str, _)| matches!(self.volumes.open.get(name), Some(Some(_)));
        if named(spec).all(is_open) {
            return Ok(Standing::Ready);
        }
        // One that failed for somebody else meanwhile is tried for this sandbox, too.
        self.order_volumes(spec)?;
        Ok(Standing::Awaited)
    }

    /// The workshop opened a volume, or could not.
    pub(super) fn volume_opened(&mut self, order: Order, answer: Result<(Opened, bool), Failure>) {
        let Order {
            name,
            sandbox,
            goes_with_sandbox,
        } = order;
        match answer {
            Ok((opened, is_new)) => {
                if is_new && goes_with_sandbox {
                    let owned = self.volumes.owned.entry(sandbox.clone()).or_default();
                    owned.push(name.clone());
                }
                self.volumes.open.insert(name.clone(), Some(opened));
                if is_new {
                    let users = self.volume_users();
                    let is_wanted = users.get(&name).is_some_and(|ids| ids.contains(&sandbox));
                    self.volumes.made_for.insert(name.clone(), sandbox.clone());
                    if !is_wanted {
                        // Whoever wanted it was quicker to go.
                        self.drop_volumes(&sandbox);
                    }
                }
            }
            Err(failure) => {
                self.volumes.open.remove(&name);
                self.fail_volume(&name, &failure);
            }
        }
        for number in self.claimed_with(&name) {
            self.go_on(number);
        }
        self.close_unused_volumes();
    }

    /// Refuses everybody who waits for a volume.
    fn fail_volume(&mut self, name: &str, failure: &Failure) {
        let words = format!("the volume {name}: {}", failure.message);
        for number in self.claimed_with(name) {
            self.refuse_slot(number, Failure::new(failure.kind, words.clone()));
        }
    }

    /// The slots that wait for a volume.
    fn claimed_with(&self, name: &str) -> Vec<u32> {
        let waits = |slot: &Slot| match &slot.stage {
            Stage::Claimed(job) => named(&job.spec).any(|(it, _)| it == name),
            _ => false,
        };
        let slots = self.slots.iter().filter(|(_, slot)| waits(slot));
        slots.map(|(number, _)| *number).collect()
    }

    /// Collects what a sandbox mounts, under its own ids.
    pub(super) fn volume_trees(
        &self,
        spec: &Spec,
        ids: Option<BorrowedFd<'_>>,
    ) -> Result<Vec<OwnedFd>, Failure> {
        let trees = spec.volumes.iter().map(|volume| {
            let tree = self.volume_tree(&volume.source)?;
            mounts::volume_copy(tree.as_fd(), ids, volume.read_only).map_err(|error| {
                let words = format!("copy the mount of {}: {error}", volume.target.display());
                Failure::new(FailureKind::VolumeUnusable, words)
            })
        });
        trees.collect()
    }

    fn volume_tree(&self, source: &Source) -> Result<OwnedFd, Failure> {
        match source {
            Source::Host { root, path } => self.host_paths.open(root, path),
            Source::Named { name, path, .. } => {
                let Some(Some(opened)) = self.volumes.open.get(name) else {
                    let words = format!("the volume {name} is not open");
                    return Err(Failure::new(FailureKind::VolumeUnusable, words));
                };
                part_of(opened, path).map_err(|error| {
                    let shown = path.display();
                    let words = format!("{shown} in the volume {name}: {error}");
                    Failure::new(FailureKind::VolumePath, words)
                })
            }
        }
    }

    /// Closes the volumes that nobody has or wants any more.
    pub(super) fn close_unused_volumes(&mut self) {
        if self.volumes.open.is_empty() {
            return;
        }
        let users = self.volume_users();
        let open = &mut self.volumes.open;
        let unused = open.extract_if(|name, it| it.is_some() && !users.contains_key(name));
        let unused: Vec<Opened> = unused.filter_map(|(_, opened)| opened).collect();
        let held = unused
            .into_iter()
            .flat_map(|opened| std::iter::once(opened.tree).chain(opened.image));
        self.let_go(held.collect::<Vec<_>>().into_iter());
    }

    /// Who has or wants which volume.
    fn volume_users(&self) -> HashMap<String, BTreeSet<String>> {
        let mut users: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut add = |names: &mut dyn Iterator<Item = &str>, id: &str| {
            for name in names {
                let of = users.entry(name.to_owned()).or_default();
                of.insert(id.to_owned());
            }
        };
        for job in &self.waiting {
            add(&mut named(&job.spec).map(|(name, _)| name), &job.spec.id);
        }
        // Those paused to disk are to find them again.
        for parked in self.ended.values().filter(|it| it.is_parked()) {
            let spec = &parked.tenant.spec;
            add(&mut named(spec).map(|(name, _)| name), &spec.id);
        }
        for slot in self.slots.values() {
            if let Stage::Claimed(job) = &slot.stage {
                add(&mut named(&job.spec).map(|(name, _)| name), &job.spec.id);
            }
            // Until its process has ended, whatever became of its sandbox.
            if let Some((id, names)) = &slot.mounted {
                add(&mut names.iter().map(String::as_str), id);
            }
        }
        users
    }

    /// A sandbox runs: what was made for it stays if it is not to go with it.
    pub(super) fn keep_volumes(&mut self, id: &str) {
        self.volumes.made_for.retain(|_, sandbox| sandbox != id);
    }

    /// A sandbox did not come about, or is deleted: what was made for it goes, unless others have
    /// it by now.
    pub(super) fn drop_volumes(&mut self, id: &str) {
        let made = self.volumes.made_for.extract_if(|_, sandbox| sandbox == id);
        let mut names: HashSet<String> = made.map(|(name, _)| name).collect();
        names.extend(self.volumes.owned.remove(id).unwrap_or_default());
        if names.is_empty() {
            return;
        }
        let users = self.volume_users();
        for name in names {
            let others = users
                .get(&name)
                .is_some_and(|ids| ids.iter().any(|it| it != id));
            if others {
                volumes::disown(&name);
            } else {
                // It may have been removed by its name before.
                let _ = self.retire(&name);
            }
        }
    }

    /// Takes a volume away. What it held is removed when there is time.
    fn retire(&mut self, name: &str) -> io::Result<()> {
        self.volumes.retired += 1;
        volumes::retire(name, self.volumes.retired)?;
        if let Some(Some(opened)) = self.volumes.open.remove(name) {
            self.let_go(std::iter::once(opened.tree).chain(opened.image));
        }
        self.sweep_volumes();
        Ok(())
    }

    /// Has the workshop remove what is on its way out.
    pub(super) fn sweep_volumes(&mut self) {
        if self.workshop.ask(&Task::Sweep, &[]).is_ok() {
            self.tasks.push_back(WorkshopClient::Nobody);
        }
    }

    /// The limits of a sandbox's volumes that this launcher cannot keep.
    pub(super) fn unenforced_volumes(&self, spec: &Spec) -> Option<&'static str> {
        let is_asked = |(_, new): (_, Option<NewVolume>)| new.is_some_and(|new| new.is_asked);
        (self.ids != IdMode::OwnRange && named(spec).any(is_asked)).then_some("storage")
    }
}

/// Opens a part of a named volume. Its folders are made; no link is followed, because sandboxes
/// write them.
// BOUNDARY: sandbox → host. Test: a_link_in_a_volume_is_no_way_out_of_it
fn part_of(opened: &Opened, path: &Path) -> io::Result<OwnedFd> {
    let data = mounts::open_beneath(opened.tree.as_fd(), Path::new(DATA))?;
    let part = open_or_make(data.as_fd(), path)?;
    let kind = rustix::fs::fstat(&part)?.st_mode;
    match rustix::fs::FileType::from_raw_mode(kind) {
        rustix::fs::FileType::Directory | rustix::fs::FileType::RegularFile => Ok(part),
        _ => Err(io::Error::other("it is neither a folder nor a plain file")),
    }
}

/// The named volumes of a sandbox, each with how it is made.
pub(super) fn named(spec: &Spec) -> impl Iterator<Item = (&str, Option<NewVolume>)> {
    spec.volumes
        .iter()
        .filter_map(|Volume { source, .. }| match source {
            Source::Named { name, new, .. } => Some((name.as_str(), *new)),
            Source::Host { .. } => None,
        })
}

/// Whether a path leads down and nowhere else, from one folder at least.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Whether this is the name of a volume: never that of what is unfinished or removed.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_that_could_lead_elsewhere_are_none() {
        for (name, expected) in [
            ("a", true),
            ("data-1", true),
            ("", false),
            (".new-a", false),
            ("..", false),
            ("a/b", false),
            ("A", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
        }
        for (path, expected) in [
            ("a/b", true),
            ("", false),
            ("/a", false),
            ("../a", false),
            ("a/../b", false),
        ] {
            assert_eq!(is_plain(Path::new(path)), expected, "{path}");
        }
    }
}
