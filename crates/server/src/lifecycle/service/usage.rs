//! Who uses a sandbox: what keeps it alive, and what ends it when nobody does.

use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::{ErrorKind, Upstream};
use barchan_wire::id::SandboxId;

use super::Lifecycle;
use crate::activity::Busy;
use crate::lifecycle::registry::Entry;
use crate::lifecycle::state::{Event, State};
use crate::lifecycle::{LifecycleError, Verb};
use crate::observe::carried;

/// The least by which a use must put off a sandbox's end for the record to be written anew.
const RENEWAL_MIN: Duration = Duration::from_secs(60);

impl Lifecycle {
    /// How a port of a running sandbox is reached.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not run; the error says why it ended.
    pub async fn reach(&self, id: &SandboxId, port: u16) -> Result<Upstream, LifecycleError> {
        let record = self.running(id)?;
        let reached = self.0.runtime.endpoint(record.id(), port);
        let reached = self.ask(Verb::Reach, id, reached).await;
        if let Err(LifecycleError::Runtime { source, .. }) = &reached
            && source.kind == ErrorKind::NotFound
        {
            // It ended a moment ago, and why is not told to us yet.
            self.look_again(id).await;
            self.running(id)?;
        }
        reached
    }

    /// Notes that somebody uses a sandbox, until what this returns is dropped. `renews` says
    /// whether the use puts off the sandbox's end, if its caller asked for that at all.
    #[must_use]
    pub(crate) fn enter(&self, id: &SandboxId, renews: bool) -> Option<Busy> {
        let entry = self.0.registry.get(id)?;
        let busy = entry.activity.begin(&self.0.clock);
        if renews {
            self.accessed(&entry);
        }
        Some(busy)
    }

    /// Notes that somebody had to do with a sandbox this moment, if only with its record.
    pub(super) fn touch(&self, entry: &Entry) {
        drop(entry.activity.begin(&self.0.clock));
    }

    /// Returns once a sandbox is paused; never when it goes before that.
    pub(crate) async fn paused(&self, id: &SandboxId) {
        match self.0.registry.get(id) {
            Some(entry) => entry.paused().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the processes of a sandbox are still there, running or standing still.
    pub(crate) async fn is_there(&self, id: &SandboxId) -> bool {
        self.look_again(id).await;
        let record = self.get(id);
        record.is_ok_and(|it| matches!(it.state(), State::Running | State::Paused))
    }

    fn accessed(&self, entry: &Arc<Entry>) {
        let record = entry.record();
        let later = record.later_after_access(self.0.clock.now());
        if *record.state() != State::Running || later < RENEWAL_MIN {
            return;
        }
        let (this, entry) = (self.clone(), Arc::clone(entry));
        self.0.tasks.spawn(carried(async move {
            match this.change(&entry, Event::Accessed).await {
                Ok(_)
                | Err(
                    LifecycleError::NotFound(_)
                    | LifecycleError::Gone { .. }
                    | LifecycleError::NotRunning { .. },
                ) => {}
                Err(error) => tracing::warn!(%error, "a use did not put off a sandbox's end"),
            }
        }));
    }

    /// For how long nobody has used a sandbox and nothing in it was at work. Whether something is,
    /// its daemon is asked only when that decides.
    pub(super) async fn idle(&self, entry: &Entry) -> Duration {
        let idle = entry.activity.idle(&self.0.clock);
        let record = entry.record();
        let limit = record.origin().idle_timeout_s.map(Duration::from_secs);
        if limit.is_none_or(|limit| idle < limit) || *record.state() != State::Running {
            return idle;
        }
        match tokio::time::timeout(self.1.verb_wait, self.0.runtime.is_busy(record.id())).await {
            Ok(Ok(false)) => idle,
            // Work counts as use; and who does not answer is not judged by this.
            Ok(Ok(true) | Err(_)) | Err(_) => {
                self.touch(entry);
                Duration::ZERO
            }
        }
    }
}
