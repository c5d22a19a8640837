//! The request for which a task works, so that what is done for it says so.

use std::sync::Arc;

use tracing::Instrument;

use super::Context;

/// The request that a task works for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Its id, as every line of the log has it.
    pub(crate) request_id: Option<Arc<str>>,
    /// Its place in a trace, when spans are collected.
    pub(crate) context: Option<Context>,
}

tokio::task_local! {
    static SCOPE: Scope;
}

/// The request of this task; none when the server works on its own.
pub(crate) fn current() -> Scope {
    SCOPE.try_with(Clone::clone).unwrap_or_default()
}

impl Scope {
    /// Does something for this request.
    pub(crate) fn run<T>(self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        SCOPE.scope(self, work)
    }
}

/// Work that another task does for the same request.
pub(crate) fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    current().run(work.in_current_span())
}
