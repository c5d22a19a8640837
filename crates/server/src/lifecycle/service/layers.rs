//! Sealed layers: what callers ask for. The runtime has them, and they go with their sandbox; what
//! is said of one is kept with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_runtime::{
    ErrorKind, Layer, Limits, Origin as From, RuntimeError, SealOrder, Sealed, WhenHeld,
};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::create::{NETWORK_NAME, NETWORKS};
use barchan_wire::lifecycle::layers::{Fork, SealLayer, Undo, WhenBusy};
use barchan_wire::lifecycle::{Layer as Told, Time};
use serde::{Deserialize, Serialize};

use super::{Draft, Lifecycle, standing};
use crate::lifecycle::error::{LifecycleError, Verb};
use crate::lifecycle::layer::LayerError;
use crate::lifecycle::retention::Kept;
use crate::lifecycle::state::{Record, State};

/// Shortest time to live of a sandbox that is made of a layer, in seconds.
const TIMEOUT_S_MIN: u64 = 60;

/// What is kept with a layer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    at: Time,
    /// It is there to be looked at once, and nobody is told of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    passing: bool,
}

impl Note {
    /// That of a layer which nobody gave a label of their own.
    pub(super) fn labelled(label: &str, at: Time) -> Self {
        Self {
            label: Some(label.to_owned()),
            at,
            passing: false,
        }
    }

    /// As the runtime keeps it.
    pub(super) fn told(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Lifecycle {
    /// Seals what a running sandbox has written. Its oldest layers are forgotten when it has more
    /// than it may.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not run, or the runtime cannot do it; and when
    /// processes use the files, where that was to be refused.
    pub async fn seal(&self, id: &SandboxId, wish: SealLayer) -> Result<Told, LifecycleError> {
        self.seal_for(id, wish, false).await
    }

    /// The same, perhaps of one that is soon forgotten and pushes none out.
    pub(super) async fn seal_for(
        &self,
        id: &SandboxId,
        wish: SealLayer,
        passing: bool,
    ) -> Result<Told, LifecycleError> {
        self.offers_layers()?;
        let entry = self.entry(id)?;
        self.running(id)?;
        self.touch(&entry);
        let at = Time::new(self.0.clock.now().wall);
        let note = Note {
            label: wish.label,
            at,
            passing,
        };
        let order = SealOrder {
            sandbox: id.clone(),
            when_held: match wish.when_busy {
                WhenBusy::Force => WhenHeld::Copy,
                WhenBusy::Refuse => WhenHeld::Refuse,
            },
            note: note.told(),
            wait: self.1.snapshot_wait,
        };
        let this = self.clone();
        let work = self.owned(async move {
            let id = order.sandbox.clone();
            let sealed = this.0.runtime.seal(order).await;
            match sealed.map_err(|source| by(&id, source))? {
                Sealed::Layer(layer) => {
                    if !passing && this.1.retention.may_exceed(layer.number) {
                        this.forget_surplus(&id).await;
                    }
                    Ok(told(&layer, note))
                }
                Sealed::Held(holders) => Err(LayerError::Held { id, holders }.into()),
            }
        });
        self.traced("sandbox.seal", id, work).await
    }

    /// Whether there is such a sandbox, and its runtime seals.
    ///
    /// # Errors
    /// When it is not so.
    pub fn may_seal(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        self.offers_layers()?;
        self.entry(id).map(drop)
    }

    /// The layers of a sandbox, oldest first.
    ///
    /// # Errors
    /// When there is no such sandbox, or the runtime cannot say.
    pub async fn layers(&self, id: &SandboxId) -> Result<Vec<Told>, LifecycleError> {
        self.offers_layers()?;
        self.entry(id)?;
        let all = self.0.runtime.layers(id).await;
        let all = all.map_err(|source| by(id, source))?;
        Ok(all.iter().filter_map(noted).collect())
    }

    /// Starts a running sandbox anew with the files of a layer.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, it does not run, or the runtime cannot do it; and
    /// when a command runs, where that was to be refused.
    pub async fn undo(&self, id: &SandboxId, wish: Undo) -> Result<Arc<Record>, LifecycleError> {
        self.offers_layers()?;
        let entry = self.entry(id)?;
        let this = self.clone();
        let work = self.owned(async move {
            let _turn = entry.turn.lock().await;
            let record = entry.record();
            let id = record.id().clone();
            this.running(&id)?;
            let is_busy = this.0.runtime.is_busy(&id);
            if wish.when_busy == WhenBusy::Refuse && this.ask(Verb::Reach, &id, is_busy).await? {
                return Err(LayerError::Busy(id).into());
            }
            this.touch(&entry);
            let undone = this.0.runtime.undo(&id, wish.layer).await;
            undone.map_err(|source| by(&id, source))?;
            Ok(entry.record())
        });
        self.traced("sandbox.undo", id, work).await
    }

    /// Forgets a layer.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or the runtime cannot do it.
    pub async fn forget_layer(&self, id: &SandboxId, number: u32) -> Result<(), LifecycleError> {
        self.offers_layers()?;
        self.entry(id)?;
        let all = self.0.runtime.layers(id).await;
        let all = all.map_err(|source| by(id, source))?;
        if !all.iter().any(|layer| layer.number == number) {
            return Err(LayerError::NotFound(format!("sandbox {id} has no layer {number}")).into());
        }
        let forgotten = self.0.runtime.forget_layers(id, &[number]).await;
        forgotten.map_err(|source| by(id, source))
    }

    /// Makes sandboxes of a layer, all or none. What the sandbox was made with is theirs too, but
    /// for its name and what was mounted into it alone.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or one of them does not come about.
    pub async fn fork(
        &self,
        id: &SandboxId,
        wish: Fork,
    ) -> Result<(u32, Vec<Arc<Record>>), LifecycleError> {
        self.offers_layers()?;
        let source = self.get(id)?;
        let layer = match wish.layer {
            Some(layer) => layer,
            None => self.seal(id, SealLayer::default()).await?.number,
        };
        let draft = self.forked(&source, layer, &wish)?;
        let mut begun = tokio::task::JoinSet::new();
        for _ in 0..wish.count {
            let (this, draft) = (self.clone(), draft.clone());
            begun.spawn(async move { this.create(draft).await });
        }
        let (mut made, mut failed) = (Vec::new(), None);
        while let Some(done) = begun.join_next().await {
            match done {
                Ok(Ok(record)) => made.push(record),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some(LifecycleError::Stopping),
            }
        }
        let Some(error) = failed else {
            made.sort_by_key(|record| record.created_at());
            return Ok((layer, made));
        };
        for record in made {
            // What stays is removed at its time.
            self.remove(record.id()).await.ok();
        }
        Err(error)
    }

    fn forked(&self, source: &Record, layer: u32, wish: &Fork) -> Result<Draft, LifecycleError> {
        has_layers(source)?;
        let mut origin = source.origin().clone();
        origin.pool = None;
        // Nobody who calls the one means the other.
        origin.extensions.remove(NETWORKS);
        origin.extensions.remove(NETWORK_NAME);
        let disk = origin.granted.disk_bytes.unwrap_or_default();
        origin.shares.insert(source.id().clone(), disk);
        let granted = origin.granted;
        let mut metadata = source.metadata().clone();
        metadata.extend(wish.metadata.clone());
        let now = Time::new(self.0.clock.now().wall);
        let left = source.expires_at().map(|at| {
            let seconds = (at.as_micros() - now.as_micros()) / 1_000_000;
            u64::try_from(seconds)
                .unwrap_or_default()
                .max(TIMEOUT_S_MIN)
        });
        Ok(Draft {
            origin,
            metadata,
            timeout_s: wish.timeout.or(left),
            env: BTreeMap::new(),
            limits: Limits {
                cpu_millis: granted.cpu_millis,
                memory_bytes: granted.memory_bytes,
                pids: granted.pids,
                disk_bytes: granted.disk_bytes,
            },
            pre_start: None,
            periodic: Vec::new(),
            gpus: None,
            policy: source.policy().cloned(),
            from: Some(From {
                sandbox: source.id().clone(),
                layer,
            }),
        })
    }

    /// Forgets the layers of a sandbox that are not kept any longer.
    pub(super) async fn forget_surplus(&self, id: &SandboxId) {
        let forget = async {
            let all = self.0.runtime.layers(id).await?;
            let kept = all.iter().filter_map(|layer| {
                let told = noted(layer)?;
                Some(Kept {
                    number: layer.number,
                    bytes: layer.bytes,
                    sealed_at: told.sealed_at,
                })
            });
            let now = Time::new(self.0.clock.now().wall);
            let surplus = self.1.retention.surplus(&kept.collect::<Vec<_>>(), now);
            match surplus.is_empty() {
                true => Ok(()),
                false => self.0.runtime.forget_layers(id, &surplus).await,
            }
        };
        match forget.await {
            // It ended meanwhile, and its layers with it.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%id, %error, "old layers are not forgotten"),
            Ok(()) => {}
        }
    }

    /// The same for all sandboxes, as layers grow old by themselves.
    pub(super) async fn forget_aged(&self) {
        for record in self.0.registry.records() {
            if has_layers(&record).is_ok() {
                self.forget_surplus(record.id()).await;
            }
        }
    }

    pub(super) fn offers_layers(&self) -> Result<(), LifecycleError> {
        match self.capabilities().layers {
            true => Ok(()),
            false => Err(LayerError::Unsupported.into()),
        }
    }
}

/// Whether the layers of a sandbox can be used.
pub(super) fn has_layers(source: &Record) -> Result<(), LifecycleError> {
    if matches!(
        source.state(),
        State::Running | State::Paused | State::Parked | State::Ended(_)
    ) {
        return Ok(());
    }
    let (id, standing) = (source.id().clone(), standing(source));
    Err(LifecycleError::NotRunning { id, standing })
}

/// What the runtime says of a sandbox's layers.
pub(super) fn by(id: &SandboxId, source: RuntimeError) -> LifecycleError {
    match source.kind {
        ErrorKind::UnknownLayer => LayerError::NotFound(source.message).into(),
        ErrorKind::NotFound => LifecycleError::NotFound(id.to_string()),
        _ => LayerError::Runtime(source).into(),
    }
}

/// A layer as callers see it, unless somebody else sealed it, or it is not for them.
pub(super) fn noted(layer: &Layer) -> Option<Told> {
    let note: Note = serde_json::from_str(&layer.note).ok()?;
    (!note.passing).then(|| told(layer, note))
}

fn told(layer: &Layer, note: Note) -> Told {
    Told {
        number: layer.number,
        parent: layer.parent,
        label: note.label,
        sealed_at: note.at,
        copied: layer.is_copied,
        still_ms: layer.still.as_secs_f64() * 1000.0,
        size_bytes: layer.bytes,
        entries: layer.entries,
        digest: None,
    }
}
