//! What differs between two layers on its way to whoever asked, and why it breaks off.

use std::task::{Context, Poll, ready};

use barchan_runtime::{Form, RuntimeError};
use barchan_wire::lifecycle::ErrorBody;
use barchan_wire::lifecycle::changes::DiffLine;
use bytes::Bytes;

use crate::api::errors::Refusal;
use crate::api::reply::Broken;
use crate::lifecycle::{Comparing, LayerError, LifecycleError};

/// The body of an answer. Lines that break off end with one that says why; an archive has no place
/// for that, and ends in the middle.
pub(crate) struct Compared {
    comparing: Comparing,
    form: Form,
    is_over: bool,
}

impl Compared {
    pub(super) fn new(comparing: Comparing, form: Form) -> Self {
        Self {
            comparing,
            form,
            is_over: false,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let comparison = &mut self.comparing.comparison;
        let told = match ready!(comparison.pieces.poll_recv(cx)) {
            Some(piece) if piece.is_empty() => None,
            Some(piece) => return Poll::Ready(Some(Ok(piece))),
            None => {
                let why = ready!(comparison.poll_why_broken(cx));
                Some(last_word(self.form, why))
            }
        };
        self.is_over = true;
        Poll::Ready(told)
    }
}

fn last_word(form: Form, why: RuntimeError) -> Result<Bytes, Broken> {
    let refusal = Refusal::from(LifecycleError::from(LayerError::Runtime(why)));
    if form != Form::Lines {
        return Err(refusal.message().into());
    }
    let error = ErrorBody::new(refusal.code(), refusal.message());
    // Our own types always are JSON.
    let mut line = serde_json::to_vec(&DiffLine::Error { error }).unwrap_or_default();
    line.push(b'\n');
    Ok(line.into())
}
