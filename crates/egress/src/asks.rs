//! Connections that wait for somebody's word.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::oneshot;

use crate::limits::ASKS_MAX;

/// Who waits, by the number that a decision names.
#[derive(Debug, Default)]
pub(crate) struct Asks(RefCell<HashMap<String, oneshot::Sender<bool>>>);

/// One that waits; it waits no more when this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    /// Its number, not to be guessed.
    pub(crate) id: String,
    word: oneshot::Receiver<bool>,
    asks: &'a Asks,
}

impl Asks {
    /// One more; `None` when too many wait already.
    pub(crate) fn wait(&self) -> Option<Waiting<'_>> {
        let id = format!("{:032x}", u128::from_ne_bytes(random().ok()?));
        let mut all = self.0.borrow_mut();
        if all.len() >= ASKS_MAX {
            return None;
        }
        let (say, word) = oneshot::channel();
        all.insert(id.clone(), say);
        Some(Waiting {
            id,
            word,
            asks: self,
        })
    }

    /// Says whether a connection is made; whether it waited.
    pub(crate) fn decide(&self, id: &str, allow: bool) -> bool {
        let waiting = self.0.borrow_mut().remove(id);
        waiting.is_some_and(|waiting| waiting.send(allow).is_ok())
    }
}

impl Waiting<'_> {
    /// What somebody says about it.
    pub(crate) async fn word(&mut self) -> bool {
        (&mut self.word).await.unwrap_or(false)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.asks.0.borrow_mut().remove(&self.id);
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system's.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    match count == N {
        true => Ok(bytes),
        false => Err(io::Error::other("there are too few random bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_word_reaches_who_waits_and_nobody_else() {
        let asks = Asks::default();
        let mut first = asks.wait().unwrap();
        let second = asks.wait().unwrap();
        assert_ne!(first.id, second.id);
        assert!(asks.decide(&first.id.clone(), true));
        assert!(first.word().await);
        assert!(!asks.decide(&first.id.clone(), true));
        let gone = second.id.clone();
        drop(second);
        assert!(!asks.decide(&gone, false));
    }

    #[test]
    fn as_many_wait_as_may_and_no_more() {
        let asks = Asks::default();
        let all: Vec<_> = (0..ASKS_MAX).map(|_| asks.wait().unwrap()).collect();
        assert!(asks.wait().is_none());
        drop(all);
        assert!(asks.wait().is_some());
    }
}
