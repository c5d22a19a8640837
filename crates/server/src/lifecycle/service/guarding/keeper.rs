//! Keeps the program in the know: tells it all when it begins anew, and hears what happens.

use std::convert::Infallible;
use std::time::Duration;

use barchan_wire::egress::{Connection, Event as Told, Verdict, What};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;

use super::{Known, is_over};
use crate::egress::{Program, ProgramError, refused, rest_of};
use crate::lifecycle::registry::Entry;
use crate::lifecycle::service::Lifecycle;
use crate::lifecycle::state::Event;

/// How long to wait for a program that went away, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(5);

impl Lifecycle {
    /// Until the server stops.
    pub(in crate::lifecycle::service) async fn keep_guarded(&self) {
        let began = Time::new(self.0.clock.now().wall);
        let mut wait = RETRY_FIRST;
        let mut is_noted = false;
        loop {
            if let Some(program) = self.program() {
                let mut was_told = false;
                let Err(error) = self.attend(&program, began, &mut was_told).await;
                if was_told {
                    (wait, is_noted) = (RETRY_FIRST, false);
                    tracing::warn!(%error, "sandboxes are guarded as before, or cut off, for now");
                } else if wait == RETRY_MAX && !std::mem::replace(&mut is_noted, true) {
                    tracing::error!(%error, "new sandboxes reach nothing");
                }
            }
            // It is another program that is waited for, and not a moment.
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// Tells everything and hears what happens, until the program goes.
    async fn attend(
        &self,
        program: &Program,
        began: Time,
        was_told: &mut bool,
    ) -> Result<Infallible, ProgramError> {
        let after = self.tell_all(program).await?;
        let mut events = program.events(after).await?;
        *was_told = true;
        loop {
            let due = self.0.guarding.known().next_due();
            let due = async {
                match due {
                    Some(due) => self.0.clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = events.next() => self.today().hear(event?, began, program).await,
                () = self.0.guarding.untold.notified() => drop(self.tell_all(program).await?),
                () = due => self.today().tell_rest().await,
            }
        }
    }

    /// Tells the settings and every sandbox. Returns the event that was heard last of this run of
    /// the program: one that knows nothing of what it was told began anew.
    async fn tell_all(&self, program: &Program) -> Result<u64, ProgramError> {
        let settings = self.0.guarding.terms().settings().await;
        program.set(&settings).await?;
        let there = program.guarded().await?.sandboxes;
        let after = {
            let mut known = self.0.guarding.known();
            let knows = |id: &SandboxId| there.iter().any(|row| row.id == id.as_str());
            if known.sandboxes.is_empty() || !known.sandboxes.iter().all(knows) {
                known.sandboxes.clear();
                known.seq = 0;
            }
            known.seq
        };
        self.tell_decisions(program, &there).await?;
        for entry in self.0.registry.entries() {
            let _turn = entry.guarding.lock().await;
            match self.tell_unless_over(&entry, program).await {
                Err(error @ ProgramError::Refused { .. }) => {
                    let record = entry.record();
                    tracing::error!(id = %record.id(), %error, "nothing of a sandbox goes out");
                }
                told => told?,
            }
        }
        for row in there {
            let id: Option<SandboxId> = row.id.parse().ok();
            let entry = id.and_then(|id| self.0.registry.get(&id));
            if entry.is_none_or(|entry| is_over(&entry.record())) {
                program.forget(&row.id).await?;
            }
        }
        Ok(after)
    }

    // BOUNDARY: sandbox → host. Test: a_flood_of_refusals_fills_no_history
    async fn hear(&self, event: Told, began: Time, program: &Program) {
        self.0.guarding.known().seq = event.seq;
        let id: Option<SandboxId> = event.sandbox.parse().ok();
        let Some(entry) = id.and_then(|id| self.0.registry.get(&id)) else {
            return;
        };
        let Told {
            what,
            connection,
            ask,
            call,
            ..
        } = event;
        match (what, ask) {
            (What::Asked, Some(ask)) => self.asked(&entry.record(), &connection, ask).await,
            (What::Asked, None) => {}
            (What::Called, _) => {
                if let Some(call) = call {
                    self.called(&entry, call, program);
                }
            }
            (What::Verdict, _) if connection.verdict == Verdict::Ask => {}
            (What::Verdict | What::Closed, _) => {
                self.answered(&entry.record(), &connection).await;
            }
        }
        if what == What::Verdict && connection.verdict == Verdict::Deny {
            self.denied(&entry, &connection, began).await;
        }
    }

    async fn denied(&self, entry: &Entry, connection: &Connection, began: Time) {
        let record = entry.record();
        let told = record.last_denial();
        if connection.opened_at < began && told.is_some_and(|told| connection.opened_at <= told) {
            // An earlier run of the server was told of it.
            return;
        }
        let now = self.0.clock.now().uptime;
        let is_told = {
            let mut known = self.0.guarding.known();
            let tally = known.tallies.entry(record.id().clone());
            tally.or_default().count(now)
        };
        if is_told {
            self.note_denial(entry, refused(connection)).await;
        }
    }

    /// Tells how many refusals were not told of.
    async fn tell_rest(&self) {
        let now = self.0.clock.now().uptime;
        let rest = self.0.guarding.known().take_rest(now);
        for (id, untold) in rest {
            if let Some(entry) = self.0.registry.get(&id) {
                self.note_denial(&entry, rest_of(untold)).await;
            }
        }
    }

    async fn note_denial(&self, entry: &Entry, words: String) {
        if let Err(error) = self.change(entry, Event::Denied(words)).await {
            tracing::debug!(%error, "a refusal is not kept");
        }
    }
}

impl Known {
    fn next_due(&self) -> Option<Duration> {
        self.tallies.values().filter_map(|tally| tally.due()).min()
    }

    fn take_rest(&mut self, now: Duration) -> Vec<(SandboxId, u64)> {
        let tallies = self.tallies.iter_mut();
        let rest = tallies.filter_map(|(id, tally)| Some((id.clone(), tally.take_rest(now)?)));
        rest.collect()
    }
}
