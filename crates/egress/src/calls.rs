//! Connections that wait for a stream to a peer, which the server brings.

use std::cell::RefCell;
use std::collections::HashMap;

use hyper::upgrade::OnUpgrade;
use tokio::sync::oneshot;

use crate::asks::random;
use crate::limits::CALLS_MAX;

/// Who waits, by the number that a stream is brought for.
#[derive(Debug, Default)]
pub(crate) struct Calls(RefCell<HashMap<String, oneshot::Sender<OnUpgrade>>>);

/// One that waits; it waits no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Calling<'a> {
    /// Its number, not to be guessed.
    pub(crate) id: String,
    stream: oneshot::Receiver<OnUpgrade>,
    calls: &'a Calls,
}

impl Calls {
    /// One more; `None` when too many wait already.
    pub(crate) fn wait(&self) -> Option<Calling<'_>> {
        let id = format!("{:032x}", u128::from_ne_bytes(random().ok()?));
        let mut all = self.0.borrow_mut();
        if all.len() >= CALLS_MAX {
            return None;
        }
        let (bring, stream) = oneshot::channel();
        all.insert(id.clone(), bring);
        Some(Calling {
            id,
            stream,
            calls: self,
        })
    }

    /// Brings a stream; whether anybody waited for it.
    pub(crate) fn bring(&self, id: &str, stream: OnUpgrade) -> bool {
        let waiting = self.0.borrow_mut().remove(id);
        waiting.is_some_and(|waiting| waiting.send(stream).is_ok())
    }

    /// There will be none for this one.
    pub(crate) fn give_up(&self, id: &str) {
        self.0.borrow_mut().remove(id);
    }
}

impl Calling<'_> {
    /// The stream; `None`: there will be none.
    pub(crate) async fn stream(&mut self) -> Option<OnUpgrade> {
        (&mut self.stream).await.ok()
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.calls.give_up(&self.id);
    }
}
