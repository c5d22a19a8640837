//! Private networks: who is told of whom, and who is called.

use std::sync::Arc;

use barchan_wire::egress::{Peer, PeerCall};
use barchan_wire::id::SandboxId;
use tokio::sync::mpsc;

use super::is_over;
use crate::egress::Program;
use crate::lifecycle::networks::{Member, Membership, peers};
use crate::lifecycle::registry::Entry;
use crate::lifecycle::service::Lifecycle;
use crate::lifecycle::state::Record;

/// Most calls that wait to be looked at. They wait for seconds at most, and nobody can make more of
/// them than there may be connections.
const CALLS_MAX: usize = 1024;

/// A connection of one sandbox to another that waits for its way.
#[derive(Debug)]
pub(crate) struct Call {
    /// Whom it is to.
    pub(crate) peer: SandboxId,
    /// The port there.
    pub(crate) port: u16,
    /// Its number.
    pub(crate) id: String,
    /// Where it waits.
    pub(crate) program: Program,
}

/// The calls that are to be looked at.
#[derive(Debug)]
pub(super) struct Calls {
    told: mpsc::Sender<Call>,
    heard: Arc<tokio::sync::Mutex<mpsc::Receiver<Call>>>,
}

impl Default for Calls {
    fn default() -> Self {
        let (told, heard) = mpsc::channel(CALLS_MAX);
        Self {
            told,
            heard: Arc::new(tokio::sync::Mutex::new(heard)),
        }
    }
}

impl Lifecycle {
    /// The next connection of one sandbox to another.
    pub(crate) async fn next_call(&self) -> Option<Call> {
        self.0.guarding.calls.heard.lock().await.recv().await
    }

    /// Whom a sandbox reaches by name.
    pub(super) fn peers_of(&self, record: &Record) -> Vec<Peer> {
        match member(record) {
            Some(me) => peers(
                &me,
                self.0.registry.records().iter().filter_map(|it| member(it)),
            ),
            None => Vec::new(),
        }
    }

    /// Tells those who reach a sandbox that it came or went.
    pub(super) fn tell_peers(&self, record: &Record) {
        let (Some(me), Some(program)) = (of_origin(record), self.program()) else {
            return;
        };
        let this = self.clone();
        self.0.tasks.spawn(async move {
            for entry in this.0.registry.entries() {
                let is_peer = member(&entry.record())
                    .is_some_and(|other| other.id != me.id && other.reaches(&me));
                if is_peer {
                    let _turn = entry.guarding.lock().await;
                    this.tell_or_later(&entry, &program).await;
                }
            }
        });
    }

    /// A sandbox connects to another.
    // BOUNDARY: sandbox → host. Test: nobody_is_called_who_is_no_peer
    pub(super) fn called(&self, entry: &Entry, call: PeerCall, program: &Program) {
        let peer: Option<SandboxId> = call.peer.parse().ok();
        let other = peer.and_then(|peer| member(&self.0.registry.get(&peer)?.record()));
        let reaches = member(&entry.record())
            .zip(other.as_ref())
            .is_some_and(|(me, other)| me.reaches(other));
        let taken = match other {
            Some(other) if reaches => self.0.guarding.calls.told.try_send(Call {
                peer: other.id,
                port: call.port,
                id: call.id.clone(),
                program: program.clone(),
            }),
            _ => Ok(()),
        };
        if !reaches || taken.is_err() {
            let program = program.clone();
            self.0
                .tasks
                .spawn(async move { program.give_up(&call.id).await });
        }
    }
}

/// What a sandbox that lives takes part in.
fn member(record: &Record) -> Option<Member> {
    (!is_over(record)).then(|| of_origin(record)).flatten()
}

fn of_origin(record: &Record) -> Option<Member> {
    let origin = record.origin();
    Some(Member {
        id: record.id().clone(),
        owner: origin.tenant.clone(),
        // What was admitted is well-formed.
        membership: Membership::of(&origin.extensions).ok().flatten()?,
    })
}
