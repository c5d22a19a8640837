//! What is told of two layers, and why not all of it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::{ErrorKind, RuntimeError};

/// What differs between two layers, as it is found.
#[derive(Debug)]
pub struct Comparison {
    /// Pieces, none of them empty but the last one: without that it broke off. Lines come whole.
    pub pieces: mpsc::Receiver<Bytes>,
    /// Why it broke off: said before there are no more pieces.
    pub(crate) broken: oneshot::Receiver<RuntimeError>,
}

impl Comparison {
    /// Why there are no more pieces, though none said that all was told.
    pub async fn why_broken(&mut self) -> RuntimeError {
        std::future::poll_fn(|cx| self.poll_why_broken(cx)).await
    }

    /// The same, for whoever polls.
    pub fn poll_why_broken(&mut self, cx: &mut Context<'_>) -> Poll<RuntimeError> {
        let why = Pin::new(&mut self.broken).poll(cx);
        why.map(|why| why.unwrap_or_else(|_| unknown()))
    }
}

/// What is said of a break-off for which nobody gave a reason.
fn unknown() -> RuntimeError {
    let words = "what tells of the layers has a fault; the server's log says more";
    RuntimeError::new(ErrorKind::LayerFailed, words)
}
