//! What is counted of sandboxes, and what is looked up when somebody asks for figures.

use std::time::Duration;

use barchan_wire::id::SandboxId;

use super::Lifecycle;
use crate::lifecycle::error::LifecycleError;
use crate::lifecycle::list::word;
use crate::lifecycle::state::{Cause, Record};
use crate::observe::{Looked, SANDBOX, STATES, Span, Volumes};

/// How long the runtime may take to say which volumes there are before figures go without them.
const VOLUMES_WAIT: Duration = Duration::from_secs(1);

/// A create, from its being admitted to what came of it.
pub(super) struct Creating {
    /// Its span; parts of it are below.
    pub(super) span: Span,
    began: Duration,
    is_for_pool: bool,
}

impl Creating {
    /// Says which sandbox is being made.
    pub(super) fn is_of(&mut self, id: &SandboxId) {
        self.span.set(SANDBOX, id.as_str());
    }
}

impl Lifecycle {
    /// Does something with a sandbox as one span.
    pub(super) async fn traced<T>(
        &self,
        name: &'static str,
        id: &SandboxId,
        work: impl Future<Output = Result<T, LifecycleError>>,
    ) -> Result<T, LifecycleError> {
        let mut span = self.0.observe.span(name);
        span.set(SANDBOX, id.as_str());
        let outcome = work.await;
        if let Err(error) = &outcome {
            span.fail(result(error));
        }
        outcome
    }

    /// Counts an end, once, unless the sandbox never came to be.
    pub(super) fn count_end(&self, before: &Record, after: &Record) {
        if let (None, Some(end)) = (before.end(), after.end())
            && end.cause != Cause::CreateFailed
        {
            self.0.observe.metrics().sandboxes.ended(end);
        }
    }

    /// Begins to time a create.
    pub(super) fn creating(&self, is_for_pool: bool) -> Creating {
        Creating {
            span: self.0.observe.span("sandbox.create"),
            began: self.0.clock.now().uptime,
            is_for_pool,
        }
    }

    /// Counts what came of it.
    pub(super) fn created<T>(&self, mut create: Creating, outcome: &Result<T, LifecycleError>) {
        let took = self.0.clock.now().uptime.saturating_sub(create.began);
        let result = outcome.as_ref().map_or_else(result, |_| "ok");
        if outcome.is_err() {
            create.span.fail(result);
        }
        let took = outcome.is_ok().then_some(took);
        let sandboxes = &self.0.observe.metrics().sandboxes;
        sandboxes.created(create.is_for_pool, result, took);
    }

    /// Looks up what is not counted.
    pub(crate) async fn look(&self) -> Looked {
        let mut looked = Looked {
            runtime: self.0.runtime.capabilities().runtime,
            watchers: self.0.feed.watchers(),
            store_waiting: self.0.store.waiting(),
            ..Looked::default()
        };
        for record in self.0.registry.records() {
            let state = word(record.state());
            let number = STATES.iter().position(|it| *it == state);
            let count = number.and_then(|number| looked.sandboxes.get_mut(number));
            if let Some(count) = count.filter(|_| !record.is_spare()) {
                *count += 1;
            }
        }
        self.look_at_pools(&mut looked);
        let listed = tokio::time::timeout(VOLUMES_WAIT, self.0.runtime.volumes()).await;
        looked.volumes = listed.ok().and_then(Result::ok).map(|volumes| {
            let mounted = volumes.iter().filter(|it| !it.sandboxes.is_empty()).count();
            Volumes {
                mounted: mounted as u64,
                idle: (volumes.len() - mounted) as u64,
            }
        });
        looked
    }
}

/// How a failed create went, in one word.
fn result(error: &LifecycleError) -> &'static str {
    match error {
        LifecycleError::Full(_) => "full",
        LifecycleError::Stopping => "stopping",
        LifecycleError::Runtime { .. } | LifecycleError::Volumes(_) => "runtime",
        LifecycleError::Late { .. } => "late",
        LifecycleError::Store(_) => "store",
        _ => "refused",
    }
}
