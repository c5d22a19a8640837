//! What every connection and request may need. There is one thread, so sharing needs no locks.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_egress::rules::Overlay;
use barchan_wire::egress::{Ask, Event, PeerCall, Protocol, What};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::time::Time;
use tokio::time::sleep;

use crate::asks::Asks;
use crate::calls::Calls;
use crate::events::Events;
use crate::intercept::Upstream;
use crate::limits::{ASK_DEFAULT, COPY_BYTES, SANDBOXES_MAX, SHARE_PAUSE};
use crate::line::Line;
use crate::meter::Bucket;
use crate::pipes::Pipes;
use crate::sandbox::Sandbox;

/// The program's state.
#[derive(Debug)]
pub(crate) struct App {
    /// The time.
    pub(crate) clock: Clock,
    /// What holds for all sandboxes.
    pub(crate) operator: RefCell<Operator>,
    /// Where bytes move through.
    pub(crate) pipes: Pipes,
    /// What happened.
    pub(crate) events: Events,
    /// Who waits for somebody's word.
    pub(crate) asks: Asks,
    /// Who waits for a stream to a peer.
    pub(crate) calls: Calls,
    sandboxes: RefCell<BTreeMap<SandboxId, Rc<Sandbox>>>,
    lines: Cell<u64>,
    scratch: RefCell<Vec<u8>>,
}

/// What the operator has set.
#[derive(Debug)]
pub(crate) struct Operator {
    /// Lists above all policies.
    pub(crate) overlay: Overlay,
    /// Who is asked about names.
    pub(crate) resolvers: Rc<[SocketAddr]>,
    /// How servers are believed where requests get credentials.
    pub(crate) upstream: Rc<Upstream>,
    /// How long somebody who is asked may take.
    pub(crate) ask: Duration,
}

impl App {
    /// The state at the start: no sandbox, no resolver.
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::system(),
            operator: RefCell::new(Operator {
                overlay: Overlay::default(),
                resolvers: Rc::default(),
                upstream: Rc::default(),
                ask: ASK_DEFAULT,
            }),
            pipes: Pipes::default(),
            events: Events::default(),
            asks: Asks::default(),
            calls: Calls::default(),
            sandboxes: RefCell::default(),
            lines: Cell::new(0),
            scratch: RefCell::default(),
        }
    }

    /// Milliseconds of a clock that does not go back.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().uptime.as_millis()).unwrap_or(u64::MAX)
    }

    /// The time as people read it.
    pub(crate) fn now(&self) -> Time {
        Time::new(self.clock.now().wall)
    }

    /// A sandbox of which somebody has told.
    pub(crate) fn sandbox(&self, id: &SandboxId) -> Option<Rc<Sandbox>> {
        self.sandboxes.borrow().get(id).cloned()
    }

    /// A sandbox, also one of which nobody has told before; `None` when there are too many.
    pub(crate) fn sandbox_or_new(&self, id: &SandboxId) -> Option<Rc<Sandbox>> {
        let mut all = self.sandboxes.borrow_mut();
        if let Some(known) = all.get(id) {
            return Some(Rc::clone(known));
        }
        if all.len() >= SANDBOXES_MAX {
            return None;
        }
        let new = Rc::new(Sandbox::new(id.clone()));
        all.insert(id.clone(), Rc::clone(&new));
        Some(new)
    }

    /// All sandboxes, in the order of their ids.
    pub(crate) fn sandboxes(&self) -> Vec<Rc<Sandbox>> {
        self.sandboxes.borrow().values().cloned().collect()
    }

    /// Closes the doors of a sandbox, and cuts its connections.
    pub(crate) fn close(&self, id: &SandboxId) {
        let Some(sandbox) = self.sandbox(id) else {
            return;
        };
        sandbox.doors.borrow_mut().take();
        sandbox.cut_all("sandbox_closed");
        self.forget_unused(&sandbox);
    }

    /// Forgets a sandbox that has neither rules nor doors.
    pub(crate) fn forget_unused(&self, sandbox: &Sandbox) {
        if !sandbox.is_guarded() && sandbox.doors.borrow().is_none() {
            self.sandboxes.borrow_mut().remove(&sandbox.id);
        }
    }

    /// A new line.
    pub(crate) fn line(&self, protocol: Protocol, to: Option<SocketAddr>) -> Rc<Line> {
        let id = self.lines.get() + 1;
        self.lines.set(id);
        Rc::new(Line::new(id, protocol, to, self.now()))
    }

    /// Notes what happened to a line.
    pub(crate) fn happened(&self, sandbox: &Sandbox, what: What, line: &Line, ask: Option<Ask>) {
        let closed_at = (what == What::Closed).then(|| self.now());
        self.events.add(|seq| Event {
            seq,
            sandbox: sandbox.id.to_string(),
            what,
            connection: line.tell(closed_at),
            ask,
            call: None,
        });
    }

    /// Tells that a line waits for a stream to a peer.
    pub(crate) fn called(&self, sandbox: &Sandbox, line: &Line, call: PeerCall) {
        self.events.add(|seq| Event {
            seq,
            sandbox: sandbox.id.to_string(),
            what: What::Called,
            connection: line.tell(None),
            ask: None,
            call: Some(call),
        });
    }

    /// Waits until one more may be had of what there are so many of in a second.
    pub(crate) async fn wait_for_share(&self, bucket: &Bucket, per_second: u64) {
        while bucket.level(per_second, per_second, self.now_ms()) == 0 {
            sleep(SHARE_PAUSE).await;
        }
        bucket.take(1);
    }

    /// Memory for one copy, so that connections need none of their own. Not to be held over a wait.
    pub(crate) fn scratch(&self) -> RefMut<'_, Vec<u8>> {
        let mut scratch = self.scratch.borrow_mut();
        if scratch.is_empty() {
            *scratch = vec![0; COPY_BYTES];
        }
        scratch
    }
}
