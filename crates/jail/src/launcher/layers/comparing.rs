//! What differs between two layers of a sandbox: told by a process of its own, over the connection
//! of whoever asked.

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use super::{Layer, image_trees, no_layer, no_sandbox};
use crate::diff::{self, Given, Limits, Order};
use crate::enter::root;
use crate::ids::{FIRST, Map};
use crate::launcher::create::Caller;
use crate::launcher::snapshots::{Comparing, Task};
use crate::launcher::{Launcher, now_ms};
use crate::proto::{CompareOrder, Failure, FailureKind};

/// Longest ticket.
const TICKET_BYTES_MAX: usize = 64;

/// The stacks of two layers, top first.
type Stacks = [Vec<Rc<Layer>>; 2];

impl Launcher {
    /// Has told what differs between two layers of a sandbox.
    pub(in super::super) fn compare(&mut self, caller: Caller, order: &CompareOrder) {
        let begun = self
            .admit_transfer()
            .and_then(|()| check_ticket(&order.ticket))
            .and_then(|()| self.stacks(order))
            .and_then(|stacks| self.begin_comparing(caller, order, &stacks));
        self.refuse_transfer(caller, begun);
    }

    fn stacks(&self, order: &CompareOrder) -> Result<Stacks, Failure> {
        let id = &order.sandbox;
        let files = self.files_of(id).ok_or_else(|| no_sandbox(id))?;
        let stack = |layer| {
            let found = files.stack(layer).map(<[_]>::to_vec);
            found.ok_or_else(|| no_layer(id, layer))
        };
        Ok([stack(order.from)?, stack(order.to)?])
    }

    fn begin_comparing(
        &mut self,
        caller: Caller,
        order: &CompareOrder,
        stacks: &Stacks,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new(FailureKind::Layer, error.to_string());
        let id = &order.sandbox;
        let layers = stacks.concat();
        // Whatever ids there are, all of them are told as the sandbox numbers them.
        let base = layers.first().map_or(FIRST, |layer| layer.base());
        let ids = Map::between(0, base).map_err(failed)?;
        let lowers = self.disks.lowers(&layers, None, base).map_err(failed)?;
        let spec = self.known(id).map(|tenant| &tenant.spec);
        let spec = spec.ok_or_else(|| no_sandbox(id))?;
        let images = self.image_layers(spec);
        let images = image_trees(&self.state, &images, ids.as_fd()).map_err(failed)?;
        let image_layers: Vec<String> = images.iter().map(|(name, _)| name.clone()).collect();
        let disks = (0..).map(root::other_disk).zip(lowers.disks);
        let trees = disks.chain(images).collect();
        let (old, new) = lowers.names.split_at(stacks[0].len());
        let shared = shared(stacks);
        let own = |names: &[String]| {
            let own = names.len().saturating_sub(shared);
            names.iter().take(own).cloned().collect::<Vec<_>>()
        };
        let ticket = order.ticket.clone();
        let order = Order {
            form: order.form,
            changed: [own(old), own(new)].concat(),
            views: [old, new].map(|names| [names, &image_layers].concat()),
            limits: Limits {
                base: 0,
                ..order.limits.clone()
            },
        };
        let Some(connection) = self.clients.hand_over(caller, &self.epoll) else {
            // Whoever asked is gone, or does not keep to the rules.
            return Ok(());
        };
        let given = Given {
            trees,
            user_namespace: ids.as_fd(),
            connection: connection.as_fd(),
        };
        // From here on the end of the connection tells of what fails.
        let process = diff::start(&order, &given);
        let task = Task::Compare(Comparing {
            sandbox: id.clone(),
            layers,
            since_ms: now_ms(),
            ticket,
        });
        let begun = process.and_then(|process| self.employ(process, task));
        if let Err(error) = begun {
            self.note_failure(&format!("compare layers: {error}"));
        }
        Ok(())
    }
}

impl Launcher {
    /// Ends those that take too long, as whoever listens may be as slow as he likes.
    pub(in super::super) fn watch_comparing(&mut self) {
        let (now_ms, most_ms) = (now_ms(), self.options.comparing_ms);
        let why = format!(
            "it took more than {} s to tell what differs: read faster, or compare layers that are \
             nearer to each other",
            f64::from(most_ms) / 1000.0
        );
        let is_over = |it: &Comparing| now_ms - it.since_ms > i64::from(most_ms);
        self.snapshots.end_comparing(&why, is_over);
    }

    /// Ends those of a sandbox that goes: its disk is not to stay for them.
    pub(in super::super) fn end_comparing(&mut self, sandbox: &str) {
        let why = "the sandbox was deleted while its layers were compared";
        let is_of = |it: &Comparing| it.sandbox == sandbox;
        self.snapshots.end_comparing(why, is_of);
    }
}

/// It is kept for a while.
fn check_ticket(ticket: &str) -> Result<(), Failure> {
    if ticket.len() <= TICKET_BYTES_MAX {
        return Ok(());
    }
    let words = format!("the ticket is longer than {TICKET_BYTES_MAX} bytes");
    Err(Failure::new(FailureKind::Invalid, words))
}

/// How many layers at the bottom are the same in both.
fn shared([old, new]: &Stacks) -> usize {
    let pairs = old.iter().rev().zip(new.iter().rev());
    pairs.take_while(|(old, new)| Rc::ptr_eq(old, new)).count()
}
