//! Tells whoever is asked inside for which request it works.

use barchan_wire::header::REQUEST_ID;
use http::{HeaderMap, HeaderValue};

use crate::observe::{TRACEPARENT, TRACESTATE, current};

/// Puts the request's place in its trace into the headers of a request inside, when spans are
/// collected; else what the caller sent stays. The daemon is told the request's id as well.
pub(super) fn question(headers: &mut HeaderMap, is_daemon: bool) {
    let scope = current();
    if let Some(context) = scope.context
        && let Ok(place) = HeaderValue::from_str(&context.header())
    {
        headers.insert(TRACEPARENT, place);
        // What others add belongs to the trace that the caller named; ours has nothing to add.
        if context.state().is_none() {
            headers.remove(TRACESTATE);
        }
    }
    let id = scope
        .request_id
        .and_then(|id| HeaderValue::from_str(&id).ok());
    if let Some(id) = id.filter(|_| is_daemon) {
        headers.insert(REQUEST_ID, id);
    }
}
