//! What sandboxes may send out: told to the program that guards it, and kept here, so that it can
//! be told again.

mod asks;
mod keeper;
mod peers;
mod vaults;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use barchan_wire::egress::{Guarded, Peer, PolicyStatus};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::NetworkPolicy;
use tokio::sync::Notify;

pub(crate) use peers::Call;
use peers::Calls;
use vaults::Vaults;

use super::Lifecycle;
use crate::egress::{Program, ProgramError, Question, Said, Tally, Terms};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::guard::GuardError;
use crate::lifecycle::registry::Entry;
use crate::lifecycle::state::{Event, Policy, Record, State};
use crate::vault::Seals;

/// What is known of the program.
#[derive(Debug)]
pub(super) struct Guarding {
    is_on: bool,
    terms: RwLock<Arc<Terms>>,
    /// Something is to be told once more.
    untold: Notify,
    known: Mutex<Known>,
    calls: Calls,
    vaults: Vaults,
}

#[derive(Debug, Default)]
struct Known {
    /// The sandboxes that the program was told of.
    sandboxes: HashSet<SandboxId>,
    /// The last event that it told.
    seq: u64,
    tallies: HashMap<SandboxId, Tally>,
}

impl Guarding {
    pub(super) fn new(terms: Option<Terms>, seals: Seals) -> Self {
        Self {
            is_on: terms.is_some(),
            terms: RwLock::new(Arc::new(terms.unwrap_or_default())),
            untold: Notify::new(),
            known: Mutex::default(),
            calls: Calls::default(),
            vaults: Vaults::new(seals),
        }
    }

    /// Whether sandboxes have a network at all, as far as the operator is concerned.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics half-way while it holds the lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guarded(&self, record: &Record, peers: Vec<Peer>) -> Guarded {
        Guarded {
            policy: record.policy().map(Policy::to_wire),
            version: record.policy_version(),
            limits: self.terms().limits,
            vault: self.vaults.told(record.id()),
            peers,
        }
    }
}

impl Lifecycle {
    /// Goes by other terms from now on.
    pub(crate) fn guard_by(&self, terms: Terms) {
        let guarding = &self.0.guarding;
        let mut now = guarding
            .terms
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if **now != terms {
            *now = Arc::new(terms);
            guarding.untold.notify_one();
        }
    }

    /// Whether anything guards what sandboxes send out.
    pub(crate) fn has_guard(&self) -> bool {
        self.program().is_some()
    }

    /// Whether a policy is one; what is wrong with it if it is none.
    ///
    /// # Errors
    /// When nothing guards what sandboxes send out, or it does not answer.
    pub(crate) async fn check_policy(
        &self,
        policy: &NetworkPolicy,
    ) -> Result<Result<(), String>, GuardError> {
        let program = self.program().ok_or(GuardError::Absent)?;
        Ok(program.check(policy).await?)
    }

    /// Asks what port 18080 of a sandbox serves. What is changed there is kept before this returns;
    /// what cannot be kept does not hold either.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not live, nothing guards it, or no answer comes.
    pub(crate) async fn ask_guard(
        &self,
        id: &SandboxId,
        mut question: Question,
    ) -> Result<Said, LifecycleError> {
        let entry = self.entry(id)?;
        let program = self.program().ok_or(GuardError::Absent)?;
        self.reachable(id)?;
        self.touch(&entry);
        let changes = question.changes_policy();
        question.path = format!("/sandboxes/{id}{}", question.path);
        if !changes {
            let said = program.ask(question.clone()).await;
            match said.map_err(GuardError::from)? {
                said if said.status != 404 => return Ok(said),
                _ => {}
            }
            // It began anew a moment ago, or there is no such thing.
            let _turn = entry.guarding.lock().await;
            return self.ask_again(&entry, &program, question).await;
        }
        let this = self.clone();
        self.owned(async move { this.change_policy(&entry, &program, question).await })
            .await
    }

    async fn ask_again(
        &self,
        entry: &Entry,
        program: &Program,
        question: Question,
    ) -> Result<Said, LifecycleError> {
        let told = self.tell_unless_over(entry, program).await;
        told.map_err(GuardError::from)?;
        let said = program.ask(question).await;
        Ok(said.map_err(GuardError::from)?)
    }

    async fn change_policy(
        &self,
        entry: &Entry,
        program: &Program,
        question: Question,
    ) -> Result<Said, LifecycleError> {
        let _turn = entry.guarding.lock().await;
        let changed = self.change_and_keep(entry, program, question).await;
        if changed.is_err() {
            // Whatever became of it there: what is kept holds.
            self.tell_or_later(entry, program).await;
        }
        changed
    }

    async fn change_and_keep(
        &self,
        entry: &Entry,
        program: &Program,
        question: Question,
    ) -> Result<Said, LifecycleError> {
        let record = entry.record();
        let said = program.ask(question.clone()).await;
        let mut said = said.map_err(GuardError::from)?;
        if said.status == 404 {
            said = self.ask_again(entry, program, question).await?;
        }
        if !said.is_done() {
            return Ok(said);
        }
        let policy = match in_force(&said) {
            Some(policy) => policy,
            None => {
                let path = format!("/sandboxes/{}/policy", record.id());
                let now = program.ask(Question::get(&path)).await;
                let now = now.map_err(GuardError::from)?;
                in_force(&now).ok_or(GuardError::Unknown)?
            }
        };
        let version = said.version.unwrap_or(record.policy_version() + 1);
        self.change(entry, Event::PolicySet { policy, version })
            .await?;
        Ok(said)
    }

    /// Tells what a sandbox that is being made may send out.
    pub(super) async fn guard(&self, entry: &Entry) {
        let Some(program) = self.program() else {
            return;
        };
        let _turn = entry.guarding.lock().await;
        self.tell_or_later(entry, &program).await;
        self.tell_peers(&entry.record());
    }

    async fn tell_or_later(&self, entry: &Entry, program: &Program) {
        if let Err(error) = self.tell_unless_over(entry, program).await {
            let record = entry.record();
            tracing::warn!(id = %record.id(), %error, "nothing of a sandbox goes out yet");
            self.0.guarding.untold.notify_one();
        }
    }

    /// Tells of a sandbox that lives. Whoever calls this has the turn.
    async fn tell_unless_over(&self, entry: &Entry, program: &Program) -> Result<(), ProgramError> {
        let record = entry.record();
        if is_over(&record) {
            return Ok(());
        }
        self.tell_guarded(&record, program).await?;
        self.0
            .guarding
            .known()
            .sandboxes
            .insert(record.id().clone());
        // It may have ended meanwhile.
        self.guard_changed(&entry.record());
        Ok(())
    }

    /// Tells that a sandbox is no more, if it is so and was told of.
    pub(super) fn guard_changed(&self, record: &Record) {
        let id = record.id();
        if is_over(record) {
            self.end_asks(record);
            self.0.guarding.vaults.forget(id);
        }
        if !is_over(record) || !self.0.guarding.known().forget(id) {
            return;
        }
        self.tell_peers(record);
        let Some(program) = self.program() else {
            return;
        };
        let (this, id) = (self.clone(), id.clone());
        self.0.tasks.spawn(async move {
            if let Err(error) = program.forget(id.as_str()).await {
                tracing::debug!(%id, %error, "a sandbox that is no more is guarded on");
                this.0.guarding.untold.notify_one();
            }
        });
    }

    /// The program, where it is now.
    fn program(&self) -> Option<Program> {
        let socket = self.0.runtime.egress().filter(|_| self.0.guarding.is_on);
        socket.map(Program::at)
    }
}

impl Known {
    /// Whether it knew of a sandbox.
    fn forget(&mut self, id: &SandboxId) -> bool {
        self.tallies.remove(id);
        self.sandboxes.remove(id)
    }
}

/// Whether nothing of a sandbox will ever run again.
fn is_over(record: &Record) -> bool {
    matches!(record.state(), State::Ended(_) | State::Removing(_))
}

/// The policy that an answer tells.
fn in_force(said: &Said) -> Option<Policy> {
    let status: PolicyStatus = serde_json::from_slice(&said.body).ok()?;
    status.policy.map(Policy::from)
}
