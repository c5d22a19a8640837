//! One connection or question, as it is told of.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use barchan_egress::name::Name;
use barchan_egress::policy::Action;
use barchan_egress::verdict::Said;
use barchan_wire::egress::{Connection, Protocol, Verdict};
use barchan_wire::lifecycle::time::Time;
use tokio::sync::Notify;

use crate::meter::Way;
use crate::ruling::Ruling;

/// A connection that is open, or a question.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its number.
    pub(crate) id: u64,
    protocol: Protocol,
    to: Option<SocketAddr>,
    opened_at: Time,
    told: RefCell<Told>,
    sent_bytes: Cell<u64>,
    received_bytes: Cell<u64>,
    credentials: Cell<u64>,
    cut: Notify,
    why_cut: Cell<Option<&'static str>>,
}

#[derive(Debug)]
struct Told {
    name: Option<String>,
    verdict: Verdict,
    reason: &'static str,
    rule: Option<String>,
    /// By what it was judged, to be judged again when rules change.
    facts: Option<Box<Facts>>,
    /// Whether there was an event of it.
    is_told: bool,
}

/// What a connection was judged by.
#[derive(Debug)]
pub(crate) struct Facts {
    /// What it says about its other end.
    pub(crate) said: Said,
    /// The names that its address stood for.
    pub(crate) pins: Vec<Name>,
}

impl Line {
    /// A line about which nothing is decided.
    pub(crate) fn new(id: u64, protocol: Protocol, to: Option<SocketAddr>, now: Time) -> Self {
        Self {
            id,
            protocol,
            to,
            opened_at: now,
            told: RefCell::new(Told {
                name: None,
                verdict: Verdict::Ask,
                reason: "undecided",
                rule: None,
                facts: None,
                is_told: false,
            }),
            sent_bytes: Cell::new(0),
            received_bytes: Cell::new(0),
            credentials: Cell::new(0),
            cut: Notify::new(),
            why_cut: Cell::new(None),
        }
    }

    /// Where it goes, if it goes anywhere.
    pub(crate) const fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    /// Notes what was decided; whether that is anything new.
    pub(crate) fn rule(&self, name: Option<String>, ruling: &Ruling, facts: Option<Facts>) -> bool {
        let mut told = self.told.borrow_mut();
        let verdict = match ruling.action {
            Action::Allow => Verdict::Allow,
            Action::Ask => Verdict::Ask,
            Action::Deny => Verdict::Deny,
        };
        let is_new = !told.is_told
            || (&told.name, told.verdict, told.reason, &told.rule)
                != (&name, verdict, ruling.reason, &ruling.rule);
        *told = Told {
            name,
            verdict,
            reason: ruling.reason,
            rule: ruling.rule.clone(),
            facts: facts.map(Box::new),
            is_told: true,
        };
        is_new
    }

    /// Notes what was decided for as long as nothing is said on it.
    pub(crate) fn provide(&self, ruling: &Ruling, facts: Facts) {
        let mut told = self.told.borrow_mut();
        told.verdict = Verdict::Allow;
        told.reason = ruling.reason;
        told.rule.clone_from(&ruling.rule);
        told.facts = Some(Box::new(facts));
        told.is_told = false;
    }

    /// Whether anything has gone through it.
    pub(crate) fn has_moved(&self) -> bool {
        self.sent_bytes.get() + self.received_bytes.get() > 0
    }

    /// Notes what somebody said about it, or what ended it.
    pub(crate) fn settle(&self, verdict: Verdict, reason: &'static str) {
        let mut told = self.told.borrow_mut();
        told.verdict = verdict;
        told.reason = reason;
    }

    /// Whether there was an event of what was decided; there is one from now on.
    pub(crate) fn is_told(&self) -> bool {
        std::mem::replace(&mut self.told.borrow_mut().is_told, true)
    }

    /// What the rules would say now, by the facts of then; `None` if nothing was decided yet.
    pub(crate) fn judge_again(&self, judge: impl FnOnce(&Facts) -> Ruling) -> Option<Ruling> {
        let told = self.told.borrow();
        told.facts.as_deref().map(judge)
    }

    /// Ends it, whatever it does.
    pub(crate) fn cut(&self, reason: &'static str) {
        self.why_cut.set(Some(reason));
        self.cut.notify_one();
    }

    /// Why it is to end, if it is.
    pub(crate) const fn why_cut(&self) -> Option<&'static str> {
        self.why_cut.get()
    }

    /// Returns why it is to end, once it is.
    pub(crate) async fn is_cut(&self) -> &'static str {
        loop {
            if let Some(reason) = self.why_cut() {
                return reason;
            }
            self.cut.notified().await;
        }
    }

    /// Counts bytes.
    pub(crate) fn count(&self, way: Way, bytes: u64) {
        let count = match way {
            Way::Out => &self.sent_bytes,
            Way::In => &self.received_bytes,
        };
        count.set(count.get().saturating_add(bytes));
    }

    /// Counts a request that got credentials.
    pub(crate) fn got_credentials(&self) {
        self.credentials.set(self.credentials.get() + 1);
    }

    /// What is told of it.
    pub(crate) fn tell(&self, closed_at: Option<Time>) -> Connection {
        let told = self.told.borrow();
        Connection {
            id: self.id,
            protocol: self.protocol,
            name: told.name.clone(),
            address: self.to.map(|to| to.ip().to_string()),
            port: self.to.map(|to| to.port()),
            verdict: told.verdict,
            reason: told.reason.to_owned(),
            rule: told.rule.clone(),
            opened_at: self.opened_at,
            closed_at,
            sent_bytes: self.sent_bytes.get(),
            received_bytes: self.received_bytes.get(),
            credentials: self.credentials.get(),
        }
    }
}
