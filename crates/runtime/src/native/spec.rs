//! From a plan and an image to what the launcher is told to make.

use barchan_jail::guest::Boot;
use barchan_jail::spec::{self, Network, Spec};

use super::words::{Note, to_bind, to_hook};
use super::{Native, snapshots, volumes};
use crate::image::{ResolvedImage, Saved, oci};
use crate::{Plan, RuntimeError};

impl Native {
    /// Everything resolved, for the launcher.
    pub(super) fn spec(
        &self,
        plan: Plan,
        image: ResolvedImage,
        saved: Saved,
    ) -> Result<Spec, RuntimeError> {
        let note = Note {
            image_digest: image.digest.clone(),
        };
        let (below, cwd) = (saved.env.clone(), saved.cwd.clone());
        let (uid, gid) = oci::ids(&saved.user);
        let keepsake = snapshots::keepsake(saved, &plan)?;
        let allowed = self.settings.host_paths.as_deref().unwrap_or_default();
        let volumes = plan.volumes.into_iter();
        let volumes = volumes.map(|volume| volumes::resolve(volume, allowed));
        let mut env = image.env;
        env.insert("PATH".to_owned(), image.path);
        env.extend(below);
        env.insert(snapshots::ID_ENV.to_owned(), plan.id.to_string());
        env.extend(plan.env);
        Ok(Spec {
            id: plan.id.to_string(),
            layers: self.beneath_state(&image.layers)?,
            binds: image.binds.into_iter().map(to_bind).collect(),
            volumes: volumes.collect::<Result<_, _>>()?,
            gpus: plan.gpus,
            boot: Boot {
                id: plan.id.to_string(),
                entrypoint: plan.entrypoint,
                env,
                cwd,
                memory_bytes: plan.limits.memory_bytes,
                cpu_millis: plan.limits.cpu_millis,
                uid,
                gid,
                pre_start: plan.pre_start.map(to_hook),
                periodic: plan.periodic.into_iter().map(to_hook).collect(),
                trust: plan.trust,
            },
            limits: spec::Limits {
                cpu_millis: plan.limits.cpu_millis,
                memory_bytes: plan.limits.memory_bytes,
                pids: plan.limits.pids,
                disk_bytes: plan.limits.disk_bytes,
            },
            network: Network::Own,
            upper: None,
            from: plan.from.map(|from| spec::Origin {
                sandbox: from.sandbox.to_string(),
                layer: from.layer,
            }),
            note: serde_json::to_string(&note).unwrap_or_default(),
            keepsake,
        })
    }
}
