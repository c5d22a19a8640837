//! One sandbox: its rules, its doors, its connections.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use barchan_egress::peers::Peers;
use barchan_egress::pins::Pins;
use barchan_egress::policy::{Action, Policy};
use barchan_egress::rules::Overlay;
use barchan_egress::table::Table;
use barchan_wire::id::SandboxId;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::door::Doors;
use crate::intercept::Vault;
use crate::ledger::Ledger;
use crate::limits::{BODIES_MAX, GUARD_WAIT, QUESTIONS_MAX};
use crate::line::Facts;
use crate::meter::{Bucket, Meter};
use crate::ruling::Ruling;

/// A sandbox of which the launcher or the server has told.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// Its id.
    pub(crate) id: SandboxId,
    guard: RefCell<Option<Guard>>,
    guarded: Notify,
    /// Which names our answers gave to which addresses.
    pub(crate) pins: RefCell<Pins>,
    /// Whom it reaches by name.
    pub(crate) peers: RefCell<Peers>,
    /// What its requests get on their way.
    vault: RefCell<Option<Rc<Vault>>>,
    /// Its connections that are looked into at the moment.
    pub(crate) intercepted: Rc<Cell<usize>>,
    /// Bodies of requests that are held at the moment, to be changed.
    pub(crate) bodies: Arc<Semaphore>,
    /// Its connections.
    pub(crate) ledger: Ledger,
    /// What it may use.
    pub(crate) meter: Meter,
    /// Its sockets.
    pub(crate) doors: RefCell<Option<Doors>>,
    /// Questions that may be answered at one time.
    pub(crate) questions: Arc<Semaphore>,
    /// Questions in a second.
    pub(crate) question_rate: Bucket,
    /// New connections in a second.
    pub(crate) connection_rate: Bucket,
    /// Its connections at the moment, decided or not.
    pub(crate) places: Rc<Cell<usize>>,
    /// Pipes that it uses at the moment.
    pub(crate) pipes: Cell<usize>,
}

/// The rules of a sandbox.
#[derive(Debug)]
pub(crate) struct Guard {
    /// As they were given.
    pub(crate) policy: Policy,
    /// How often they were set or changed.
    pub(crate) version: u64,
    table: Rc<Table>,
}

/// A place among things of a sandbox, free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Rc<Cell<usize>>);

impl Place {
    /// One of so many.
    pub(crate) fn take(taken: &Rc<Cell<usize>>, most: usize) -> Option<Self> {
        if taken.get() >= most {
            return None;
        }
        taken.set(taken.get() + 1);
        Some(Self(Rc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Sandbox {
    /// A sandbox without rules or doors.
    pub(crate) fn new(id: SandboxId) -> Self {
        Self {
            id,
            guard: RefCell::new(None),
            guarded: Notify::new(),
            pins: RefCell::new(Pins::new()),
            peers: RefCell::default(),
            vault: RefCell::default(),
            intercepted: Rc::default(),
            bodies: Arc::new(Semaphore::new(BODIES_MAX)),
            ledger: Ledger::default(),
            meter: Meter::default(),
            doors: RefCell::new(None),
            questions: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            question_rate: Bucket::default(),
            connection_rate: Bucket::default(),
            places: Rc::default(),
            pipes: Cell::new(0),
        }
    }

    /// Sets its rules, and judges open connections by them.
    pub(crate) fn set_policy(&self, policy: Policy, version: u64, overlay: &Overlay) {
        let table = Rc::new(Table::new(overlay, &policy));
        *self.guard.borrow_mut() = Some(Guard {
            policy,
            version,
            table,
        });
        self.guarded.notify_waiters();
        self.judge_again();
    }

    /// Takes over other lists of the operator.
    pub(crate) fn set_overlay(&self, overlay: &Overlay) {
        if let Some(guard) = &mut *self.guard.borrow_mut() {
            guard.table = Rc::new(Table::new(overlay, &guard.policy));
        }
        self.judge_again();
    }

    /// Takes its rules away: nothing of it goes out any more.
    pub(crate) fn unguard(&self) {
        self.guard.borrow_mut().take();
        self.vault.borrow_mut().take();
        self.cut_all("not_guarded");
    }

    /// Looks at its rules, if it has any.
    pub(crate) fn with_guard<R>(&self, look: impl FnOnce(&Guard) -> R) -> Option<R> {
        self.guard.borrow().as_ref().map(look)
    }

    /// What its requests get, if they may get anything.
    pub(crate) fn vault(&self) -> Option<Rc<Vault>> {
        self.vault.borrow().clone()
    }

    /// Sets what its requests get from now on, also those of connections that are open.
    pub(crate) fn set_vault(&self, vault: Option<Vault>) {
        *self.vault.borrow_mut() = vault.map(Rc::new);
    }

    /// Whether it has rules.
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.borrow().is_some()
    }

    /// Its compiled rules.
    pub(crate) fn table(&self) -> Option<Rc<Table>> {
        self.with_guard(|guard| Rc::clone(&guard.table))
    }

    /// Waits a while for its rules.
    pub(crate) async fn wait_for_rules(&self) -> Option<Rc<Table>> {
        let wait = async {
            loop {
                let guarded = self.guarded.notified();
                if let Some(table) = self.table() {
                    return table;
                }
                guarded.await;
            }
        };
        timeout(GUARD_WAIT, wait).await.ok()
    }

    /// A place for one more connection.
    pub(crate) fn enter(&self) -> Option<Place> {
        Place::take(&self.places, self.meter.connections_max())
    }

    /// What its rules say about a connection. The names that its address stands for now are added
    /// to the facts.
    pub(crate) fn judge(&self, to: (IpAddr, u16), facts: &mut Facts, now_ms: u64) -> Ruling {
        for name in self.pins.borrow().names_of(to.0, now_ms) {
            if !facts.pins.contains(&name) {
                facts.pins.push(name);
            }
        }
        match self.table() {
            Some(table) => Ruling::of(&table, to, &facts.said, &facts.pins),
            None => Ruling::refusal("not_guarded"),
        }
    }

    /// Cuts what would not be allowed now.
    fn judge_again(&self) {
        let Some(table) = self.table() else { return };
        for line in self.ledger.open() {
            let Some(to) = line.to() else { continue };
            let to = (to.ip(), to.port());
            let judge = |facts: &Facts| Ruling::of(&table, to, &facts.said, &facts.pins);
            if line
                .judge_again(judge)
                .is_some_and(|it| it.action == Action::Deny)
            {
                line.cut("policy_changed");
            }
        }
    }

    /// Cuts all of its connections.
    pub(crate) fn cut_all(&self, reason: &'static str) {
        for line in self.ledger.open() {
            line.cut(reason);
        }
    }
}
