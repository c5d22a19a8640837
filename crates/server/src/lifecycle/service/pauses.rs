//! Pauses, in memory and to disk, and their end.

use std::sync::Arc;

use barchan_runtime::Pause;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;

use super::layers::Note;
use super::{Lifecycle, standing};
use crate::lifecycle::error::{LifecycleError, Verb};
use crate::lifecycle::layer::LayerError;
use crate::lifecycle::registry::Entry;
use crate::lifecycle::state::{Event, State};

/// The label of the layer with which a sandbox is paused to disk.
const LABEL: &str = "pause";

impl Lifecycle {
    /// Stops all processes of a sandbox from running.
    ///
    /// # Errors
    /// When it does not run, or the runtime cannot pause it.
    pub async fn pause(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        let entry = self.entry(id)?;
        let this = self.clone();
        let work = self.owned(async move {
            let how = Pause::Freeze;
            this.paused_as(&entry, how, Event::Paused).await
        });
        self.traced("sandbox.pause", id, work).await
    }

    /// Seals what a sandbox has written and ends all its processes; it starts anew with these files
    /// when it is resumed.
    ///
    /// # Errors
    /// When it does not run, or the runtime cannot do it; the sandbox runs on then.
    pub async fn park(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        let entry = self.entry(id)?;
        let this = self.clone();
        let work = self.owned(async move {
            if !this.capabilities().pause_to_disk {
                return Err(LayerError::Unsupported.into());
            }
            let at = Time::new(this.0.clock.now().wall);
            let how = Pause::ToDisk {
                note: Note::labelled(LABEL, at).told(),
            };
            this.paused_as(&entry, how, Event::Parked).await?;
            this.forget_surplus(entry.record().id()).await;
            Ok(())
        });
        self.traced("sandbox.pause", id, work).await
    }

    async fn paused_as(
        &self,
        entry: &Arc<Entry>,
        how: Pause,
        event: Event,
    ) -> Result<(), LifecycleError> {
        let _turn = entry.turn.lock().await;
        let record = entry.record();
        let (id, standing) = (record.id().clone(), standing(&record));
        match record.state() {
            State::Removing(_) => return Err(self.gone(&id)),
            State::Running => {}
            _ => return Err(LifecycleError::NotRunning { id, standing }),
        }
        let paused = self.0.runtime.pause(&id, how);
        self.ask(Verb::Pause, &id, paused).await?;
        self.touch(entry);
        self.change(entry, event).await.map(drop)
    }

    /// Lets a paused sandbox run on, or start anew when it was paused to disk.
    ///
    /// # Errors
    /// When it is not paused, or the runtime cannot resume it; and when what it gave up for its
    /// pause to disk is beyond its tenant's quota by now. It stays paused then.
    pub async fn resume(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        let entry = self.entry(id)?;
        let this = self.clone();
        let work = self.owned(async move {
            let _turn = entry.turn.lock().await;
            let record = entry.record();
            let (id, standing) = (record.id().clone(), standing(&record));
            let _claimed = match record.state() {
                State::Removing(_) => return Err(this.gone(&id)),
                State::Paused => None,
                State::Parked => Some(this.0.registry.claim_again(&entry, this.2.tenant())?),
                _ => return Err(LifecycleError::NotPaused { id, standing }),
            };
            let resumed = this.0.runtime.resume(&id);
            this.ask(Verb::Resume, &id, resumed).await?;
            this.touch(&entry);
            this.change(&entry, Event::Resumed).await.map(drop)
        });
        self.traced("sandbox.resume", id, work).await
    }
}
