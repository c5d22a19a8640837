//! The named volumes of a fake runtime: names without files.

use barchan_wire::id::SandboxId;

use super::world::World;
use crate::{ErrorKind, NamedVolume, Phase, Plan, RuntimeError, VolumeFault, VolumeSource};

impl World {
    /// Makes the volumes that a plan wants and that are not there.
    pub(super) fn make_volumes(&mut self, plan: &Plan) -> Result<(), RuntimeError> {
        for volume in &plan.volumes {
            let VolumeSource::Named { name, new } = &volume.source else {
                continue;
            };
            if self.volumes.contains_key(name) {
                continue;
            }
            let new = new.ok_or_else(|| absent(name))?;
            let made = NamedVolume {
                name: name.clone(),
                size_bytes: Some(new.bytes),
                used_bytes: Some(0),
                sandboxes: Vec::new(),
                deleted_with: new.goes_with_sandbox.then(|| plan.id.to_string()),
            };
            self.volumes.insert(name.clone(), made);
        }
        Ok(())
    }

    pub(super) fn list_volumes(&self) -> Vec<NamedVolume> {
        let with_users = |volume: &NamedVolume| NamedVolume {
            sandboxes: self.users_of(&volume.name),
            ..volume.clone()
        };
        self.volumes.values().map(with_users).collect()
    }

    pub(super) fn remove_volume(&mut self, name: &str) -> Result<(), RuntimeError> {
        let users = self.users_of(name);
        if !users.is_empty() {
            let message = format!("the volume {name} is mounted by {}", users.join(", "));
            let kind = ErrorKind::Volume(VolumeFault::InUse);
            return Err(RuntimeError::new(kind, message));
        }
        self.volumes
            .remove(name)
            .map(drop)
            .ok_or_else(|| absent(name))
    }

    /// A sandbox is gone, and with it what was to go with it.
    pub(super) fn drop_volumes(&mut self, id: &SandboxId) {
        let goes = |volume: &NamedVolume| volume.deleted_with.as_deref() == Some(id.as_str());
        let unused = self.list_volumes().into_iter();
        let unused = unused.filter(|it| goes(it) && it.sandboxes.is_empty());
        for volume in unused.collect::<Vec<_>>() {
            self.volumes.remove(&volume.name);
        }
    }

    fn users_of(&self, name: &str) -> Vec<String> {
        let has = |plan: &Plan| {
            plan.volumes.iter().any(|volume| {
                matches!(&volume.source, VolumeSource::Named { name: it, .. } if it == name)
            })
        };
        let living = self.sandboxes.values();
        let living = living.filter(|it| !matches!(it.observed.phase, Phase::Ended(_)));
        let users = living.filter(|it| has(&it.plan));
        users.map(|it| it.plan.id.to_string()).collect()
    }
}

/// Whether the caller asked for the size of a volume.
pub(super) fn is_size_asked(plan: &Plan) -> bool {
    plan.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::Named { new, .. } => new.is_some_and(|new| new.is_asked),
        VolumeSource::HostPath(_) => false,
    })
}

fn absent(name: &str) -> RuntimeError {
    let kind = ErrorKind::Volume(VolumeFault::NotFound);
    RuntimeError::new(kind, format!("there is no volume {name}"))
}
