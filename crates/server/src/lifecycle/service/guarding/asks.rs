//! Connections that wait for somebody's word.

use std::sync::Arc;

use barchan_wire::egress::{Ask, Connection, GuardedRow};
use barchan_wire::lifecycle::Time;
use barchan_wire::lifecycle::approval::ApprovalState;
use serde_json::{Map, Value, json};

use crate::approvals::{ApprovalError, ApprovalRecord, Asking, Said};
use crate::egress::{Program, ProgramError, wanted};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::guard::GuardError;
use crate::lifecycle::service::Lifecycle;
use crate::lifecycle::state::Record;

/// The kind of these approvals.
const KIND: &str = "egress";
/// Longest number of an ask that is believed to be one, in bytes.
const ASK_BYTES_MAX: usize = 128;

impl Lifecycle {
    /// The approvals in these states, or all; the youngest first.
    pub(crate) fn approvals(&self, states: &[ApprovalState]) -> Vec<Arc<ApprovalRecord>> {
        let mut all = self.0.approvals.all();
        all.retain(|it| {
            self.2.sees_owner(&it.owner) && (states.is_empty() || states.contains(&it.state()))
        });
        all.reverse();
        all
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of this id.
    pub(crate) fn approval(&self, id: &str) -> Result<Arc<ApprovalRecord>, LifecycleError> {
        let found = self.0.approvals.get(id)?;
        match self.2.sees_owner(&found.owner) {
            true => Ok(found),
            false => Err(ApprovalError::NotFound(id.chars().take(64).collect()).into()),
        }
    }

    /// Says something about one that waits, keeps it and tells it.
    ///
    /// # Errors
    /// When there is none of this id, somebody was quicker, or nothing waits any more.
    pub(crate) async fn decide(
        &self,
        id: &str,
        said: Said,
    ) -> Result<Arc<ApprovalRecord>, LifecycleError> {
        let id = self.approval(id)?.id.clone();
        let this = self.clone();
        self.owned(async move {
            let decided = this.0.approvals.decide(&id, said).await?;
            if decided.kind == KIND {
                let program = this.program().ok_or(GuardError::Absent)?;
                let is_told = this.tell_decision(&program, &decided).await;
                if !is_told.map_err(GuardError::from)? {
                    return Err(ApprovalError::Over(id).into());
                }
            }
            Ok(this.0.approvals.get(&id)?)
        })
        .await
    }

    /// Tells what was said; whether anything still waited for it.
    async fn tell_decision(
        &self,
        program: &Program,
        decided: &ApprovalRecord,
    ) -> Result<bool, ProgramError> {
        let Some(decision) = &decided.decision else {
            return Ok(true);
        };
        let is_told = program.decide(&decided.key, decision.allow).await?;
        let kept = match is_told {
            true => self.0.approvals.told(&decided.id).await,
            false => self.0.approvals.end(&decided.id).await,
        };
        if let Err(error) = kept {
            tracing::warn!(id = decided.id, %error, "what became of a decision is not kept");
        }
        Ok(is_told)
    }

    /// Tells what was said while the program was away, and ends what it does not know any more.
    pub(super) async fn tell_decisions(
        &self,
        program: &Program,
        there: &[GuardedRow],
    ) -> Result<(), ProgramError> {
        for record in self.0.approvals.all() {
            let id = record.sandbox.as_ref();
            let is_known = id.is_some_and(|id| there.iter().any(|row| row.id == id.as_str()));
            if record.kind != KIND {
                continue;
            }
            if record.is_pending() && !is_known {
                self.end_ask(&record).await;
            } else if record.is_untold() {
                self.tell_decision(program, &record).await?;
            }
        }
        Ok(())
    }

    /// A connection waits.
    pub(super) async fn asked(&self, record: &Record, connection: &Connection, ask: Ask) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if ask.id.is_empty() || ask.id.len() > ASK_BYTES_MAX || !ask.id.bytes().all(is_plain) {
            tracing::warn!("the program that guards outbound traffic asks without a number");
            return;
        }
        if ask.until <= Time::new(self.0.clock.now().wall) {
            return;
        }
        let asking = Asking {
            kind: KIND,
            key: ask.id,
            sandbox: Some(record.id().clone()),
            owner: record.origin().tenant.clone().unwrap_or_default(),
            subject: wanted(connection),
            details: details(connection),
            deadline: ask.until,
        };
        if let Err(error) = self.0.approvals.ask(asking).await {
            // It is refused at its time.
            tracing::warn!(id = %record.id(), %error, "nobody is asked about a connection");
        }
    }

    /// It was decided without anybody what becomes of a connection.
    pub(super) async fn answered(&self, record: &Record, connection: &Connection) {
        let number = json!(connection.id);
        for asked in self.0.approvals.all() {
            let is_it = asked.kind == KIND
                && asked.is_pending()
                && asked.sandbox.as_ref() == Some(record.id())
                && asked.details.get("connection") == Some(&number);
            if is_it {
                self.end_ask(&asked).await;
            }
        }
    }

    /// A sandbox is no more, and nothing of it waits.
    pub(super) fn end_asks(&self, record: &Record) {
        let all = self.0.approvals.all().into_iter();
        let of_it = all.filter(|it| it.is_pending() && it.sandbox.as_ref() == Some(record.id()));
        for asked in of_it {
            let this = self.clone();
            self.0
                .tasks
                .spawn(async move { this.end_ask(&asked).await });
        }
    }

    async fn end_ask(&self, asked: &ApprovalRecord) {
        if let Err(error) = self.0.approvals.end(&asked.id).await {
            tracing::warn!(id = asked.id, %error, "an approval expires at its deadline only");
        }
    }
}

/// What a connection is about, for programs. Names in it are the sandbox's own words.
fn details(connection: &Connection) -> Map<String, Value> {
    let protocol = json!(connection.protocol);
    let all = [
        ("connection", json!(connection.id)),
        ("protocol", protocol),
        ("name", json!(connection.name)),
        ("address", json!(connection.address)),
        ("port", json!(connection.port)),
        ("rule", json!(connection.rule)),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_null());
    known
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
