//! What the runtime reports and what the clock says.

use std::time::Duration;

use barchan_runtime::{Observed, Phase};
use barchan_wire::id::SandboxId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Lifecycle;
use crate::lifecycle::error::{LifecycleError, Verb};
use crate::lifecycle::list::word;
use crate::lifecycle::reconcile::{Finding, compare};
use crate::lifecycle::registry::Entry;
use crate::lifecycle::state::{Event, State};

/// How long layers may be kept beyond their time.
const AGING_MAX: Duration = Duration::from_secs(3600);
/// How long an end may wait for the last words of its entrypoint.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);
/// Most lines and bytes of an entrypoint's output in the message of its end.
const TAIL_LINES_MAX: usize = 5;
const TAIL_BYTES_MAX: usize = 500;

impl Lifecycle {
    /// Begins to watch, until the server stops.
    pub(super) fn watch_over(&self, changes: Receiver<Observed>) {
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let shutdown = this.0.shutdown.clone();
            tokio::select! {
                () = this.watch(changes) => {}
                () = shutdown.begun() => {}
            }
        });
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let shutdown = this.0.shutdown.clone();
            tokio::select! {
                () = this.expire() => {}
                () = shutdown.begun() => {}
            }
        });
        if self.0.guarding.is_on() {
            let this = self.clone();
            self.0.tasks.spawn(async move {
                let shutdown = this.0.shutdown.clone();
                tokio::select! {
                    () = this.keep_guarded() => {}
                    () = shutdown.begun() => {}
                }
            });
        }
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let shutdown = this.0.shutdown.clone();
            tokio::select! {
                () = this.sweep() => {}
                () = shutdown.begun() => {}
            }
        });
    }

    async fn watch(&self, mut changes: Receiver<Observed>) {
        loop {
            match changes.recv().await {
                Ok(Observed {
                    id,
                    phase: phase @ Phase::Ended(_),
                    ..
                }) => {
                    let Some(entry) = self.0.registry.get(&id) else {
                        continue;
                    };
                    let this = self.today();
                    self.0
                        .tasks
                        .spawn(async move { this.ended(&entry, phase).await });
                }
                // Pauses and resumes are told by whoever asked for them; a report of one may be
                // older than the answer.
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.today().reconcile_logged().await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn expire(&self) {
        loop {
            for id in self.0.deadlines.due(&self.0.clock).await {
                self.today().check(&id);
            }
        }
    }

    async fn sweep(&self) {
        let mut aged_at = self.0.clock.now().uptime;
        loop {
            let next = self.0.clock.now().uptime + self.today().1.reconcile_interval;
            self.0.clock.sleep_until(next).await;
            let this = self.today();
            this.reconcile_logged().await;
            this.reconcile_snapshots().await;
            let now = self.0.clock.now().uptime;
            if let Some(age) = this.1.retention.age
                && now.saturating_sub(aged_at) >= AGING_MAX.min(age / 10)
            {
                aged_at = now;
                this.forget_aged().await;
            }
            if let Err(error) = this.forget_old_ends().await {
                tracing::error!(%error, "ends that nobody reads any more stay");
            }
        }
    }

    /// Takes the ends out that were readable for long enough.
    async fn forget_old_ends(&self) -> Result<(), LifecycleError> {
        let now = self.0.clock.now();
        let spans = self.1.spans;
        let over = self.0.graves.take(|grave| grave.is_forgettable(now, spans));
        if !over.is_empty() {
            self.0.store.slot().await?.forget(over).kept().await?;
        }
        Ok(())
    }

    /// Removes a sandbox if its time is over.
    fn check(&self, id: &SandboxId) {
        let Some(entry) = self.0.registry.get(id) else {
            return;
        };
        let this = self.clone();
        self.0.tasks.spawn(async move {
            let record = entry.record();
            let idle = this.idle(&entry).await;
            match this.remove_now(&entry, Event::Checked { idle }).await {
                Ok(true) => tracing::info!(id = %record.id(), "sandbox expired"),
                Ok(false)
                | Err(
                    LifecycleError::NotFound(_)
                    | LifecycleError::Gone { .. }
                    | LifecycleError::NotRunning { .. },
                ) => {}
                Err(error) => tracing::error!(id = %record.id(), %error, "expiry is tried again"),
            }
        });
    }

    async fn reconcile_logged(&self) {
        if let Err(error) = self.reconcile().await {
            tracing::error!(%error, "records and sandboxes could not be compared");
        }
    }

    /// Brings records and the runtime's sandboxes to agree, and takes up what was left undone.
    pub(super) async fn reconcile(&self) -> Result<(), LifecycleError> {
        let records = self.0.registry.records();
        let wait = self.1.verb_wait;
        let listed = tokio::time::timeout(wait, self.0.runtime.list()).await;
        let observed = listed
            .unwrap_or_else(|_| {
                let what = format!("the runtime did not list its sandboxes within {wait:?}");
                let kind = barchan_runtime::ErrorKind::Unavailable;
                Err(barchan_runtime::RuntimeError::new(kind, what))
            })
            .map_err(|source| LifecycleError::Runtime {
                verb: Verb::Reach,
                source,
            })?;
        let known = |id: &SandboxId| self.0.registry.get(id).is_some();
        for finding in compare(&records, &observed, known) {
            let entry = match &finding {
                Finding::Apply(id, _) => self.0.registry.get(id),
                Finding::Ended(..) | Finding::Stray(_) => None,
            };
            let turn = entry.as_ref().map(|entry| entry.turn.try_lock());
            // Whoever is at it is about to tell what comes of it.
            if !matches!(turn, Some(Err(_))) {
                self.act_on(finding).await;
            }
        }
        let now = self.0.clock.now().uptime;
        for entry in self.0.registry.entries() {
            let record = entry.record();
            if matches!(record.state(), State::Removing(_)) {
                let again = self.remove_again(&entry).await;
                again.unwrap_or_else(|error| {
                    tracing::error!(id = %record.id(), %error, "removal is tried again");
                });
            } else if record.deadline().is_some_and(|deadline| deadline <= now) {
                self.check(record.id());
            }
        }
        Ok(())
    }

    async fn act_on(&self, finding: Finding) {
        match finding {
            Finding::Apply(id, event) => {
                let Some(entry) = self.0.registry.get(&id) else {
                    return;
                };
                if let Ok(record) = self.change(&entry, event).await {
                    let state = word(record.state());
                    tracing::warn!(%id, state, "a sandbox changed unasked");
                }
            }
            Finding::Ended(id, phase) => {
                let Some(entry) = self.0.registry.get(&id) else {
                    return;
                };
                self.ended(&entry, phase).await;
            }
            Finding::Stray(id) => match self.delete(&id).await {
                Ok(()) => tracing::warn!(%id, "removed a sandbox that has no record"),
                Err(error) => tracing::error!(%id, %error, "a stray sandbox stays"),
            },
        }
    }

    /// Notes an end, with the entrypoint's last words.
    pub(super) async fn ended(&self, entry: &Entry, phase: Phase) {
        let record = entry.record();
        if !matches!(
            record.state(),
            State::Creating | State::Running | State::Paused | State::Parked
        ) {
            return;
        }
        let words = tokio::time::timeout(LAST_WORDS_WAIT, self.0.runtime.logs(record.id())).await;
        let tail = tail(&words.ok().and_then(Result::ok).unwrap_or_default());
        match self
            .change(
                entry,
                Event::Seen {
                    phase,
                    tail,
                    revision: None,
                },
            )
            .await
        {
            Ok(record) => {
                // Its last words are for its owner, not for the log.
                let (id, state) = (record.id(), word(record.state()));
                let cause = record.end().map_or("none", |end| end.cause.as_str());
                tracing::info!(%id, state, cause, "ended");
            }
            Err(
                LifecycleError::NotFound(_)
                | LifecycleError::Gone { .. }
                | LifecycleError::NotRunning { .. },
            ) => {}
            Err(error) => tracing::error!(id = %record.id(), %error, "an end is not kept"),
        }
    }

    /// Looks at one sandbox whose daemon did not answer.
    pub async fn look_again(&self, id: &SandboxId) {
        let Some(entry) = self.0.registry.get(id) else {
            return;
        };
        let revision = entry.record().revision();
        let seen = self.ask(Verb::Reach, id, self.0.runtime.observe(id)).await;
        let finding = match seen {
            Ok(Some(Observed {
                phase: phase @ Phase::Ended(_),
                ..
            })) => Finding::Ended(id.clone(), phase),
            Ok(None) => Finding::Apply(id.clone(), Event::Lost { revision }),
            Ok(Some(Observed {
                phase: Phase::Parked,
                ..
            })) => {
                // Whoever pauses it is about to say so.
                drop(entry.turn.lock().await);
                return;
            }
            Ok(Some(_)) | Err(_) => return,
        };
        self.act_on(finding).await;
    }
}

/// The last lines of an output, made fit for a message.
// BOUNDARY: sandbox → host. Test: hostile_last_words_are_tamed
fn tail(output: &[u8]) -> String {
    let start = output.len().saturating_sub(TAIL_BYTES_MAX * 4);
    let text = String::from_utf8_lossy(output.get(start..).unwrap_or_default());
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let last = lines
        .get(lines.len().saturating_sub(TAIL_LINES_MAX)..)
        .unwrap_or_default();
    let joined = last.join(" | ");
    let plain: String = joined.chars().filter(|c| !c.is_control()).collect();
    let from = plain.len().saturating_sub(TAIL_BYTES_MAX);
    plain
        .get(plain.ceil_char_boundary(from)..)
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_last_words_are_tamed() {
        for (output, expected) in [
            (b"".as_slice(), ""),
            (b"one\ntwo\n", "one | two"),
            (b"1\n2\n3\n4\n5\n6\n\n", "2 | 3 | 4 | 5 | 6"),
            (b"\x1b[31mred\x1b[0m\x00\x07", "[31mred[0m"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(tail(output), expected);
        }
        let long = tail("é".repeat(100_000).as_bytes());
        assert!(long.len() <= TAIL_BYTES_MAX && long.starts_with(['é', '\u{fffd}']));
    }
}
