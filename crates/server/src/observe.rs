//! What an operator sees of a running server: figures, spans of what was done, ids of requests.

mod context;
mod metrics;
mod otlp;
mod process;
mod scope;
mod span;

use std::fmt;
use std::sync::Arc;

use barchan_daemon::clock::Clock;

pub(crate) use context::{Context, TRACEPARENT, TRACESTATE};
pub use metrics::reference;
pub(crate) use metrics::{Allocated, Answered, Looked, Metrics, Part, STATES, Streams, Volumes};
pub(crate) use otlp::{BadEndpoint, Endpoint, Exporter, Plan};
pub(crate) use scope::{Scope, carried, current};
pub(crate) use span::{Kind, Span, Tracer};

/// The attribute of a span that says which sandbox it is about.
pub(crate) const SANDBOX: &str = "barchan.sandbox.id";

/// Figures and spans of one server. Clones are the same.
#[derive(Clone)]
pub struct Observe(Arc<Inner>);

struct Inner {
    metrics: Metrics,
    tracer: Tracer,
    clock: Clock,
}

/// Figures that were declared wrongly, which is a fault of ours.
#[derive(Debug, thiserror::Error)]
#[error("the server's own figures are declared wrongly: {0}")]
pub struct BadFigures(String);

impl Observe {
    /// Figures of operations of these names, and spans for whoever collects them, if anybody does.
    pub(crate) fn new(
        clock: Clock,
        operations: &[String],
        plan: Option<Plan>,
    ) -> Result<(Self, Option<Exporter>), BadFigures> {
        let bad = |error: prometheus::Error| BadFigures(error.to_string());
        let metrics = Metrics::new(operations).map_err(bad)?;
        let (tracer, exporter) = match plan {
            None => (Tracer::off(), None),
            Some(plan) => {
                let (tracer, exporter) = plan.begin(&metrics.otlp, clock.now());
                (tracer, Some(exporter))
            }
        };
        let inner = Inner {
            metrics,
            tracer,
            clock,
        };
        Ok((Self(Arc::new(inner)), exporter))
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Whether spans are collected at all.
    pub(crate) fn traces(&self) -> bool {
        self.0.tracer.is_on()
    }

    /// A span of work that the server does for the request of this task, or on its own.
    pub(crate) fn span(&self, name: &'static str) -> Span {
        match current().context {
            Some(parent) => self.child(&parent, name),
            None => self.root(name),
        }
    }

    /// A span below another one.
    pub(crate) fn child(&self, parent: &Context, name: &'static str) -> Span {
        self.begin(Some(parent), name.to_owned(), Kind::Internal).1
    }

    fn root(&self, name: &'static str) -> Span {
        self.begin(None, name.to_owned(), Kind::Internal).1
    }

    /// A span and what continues it elsewhere; neither when nobody collects spans.
    pub(crate) fn begin(
        &self,
        parent: Option<&Context>,
        name: String,
        kind: Kind,
    ) -> (Option<Context>, Span) {
        if !self.0.tracer.is_on() {
            return (None, Span::none());
        }
        let context = match parent {
            Some(parent) => parent.next(),
            None => Context::root(|number| self.0.tracer.takes(number)),
        };
        if !context.is_sampled() {
            return (Some(context), Span::none());
        }
        let parent = parent.map(Context::span_id);
        let tracer = self.0.tracer.clone();
        let span = Span::open(
            tracer,
            self.0.clock.clone(),
            context.clone(),
            parent,
            name,
            kind,
        );
        (Some(context), span)
    }

    /// Times a part of making a sandbox, until what this returns is dropped.
    pub(crate) fn part(&self, part: Part, of: &Span) -> Timed {
        let span = match of.context() {
            Some(parent) => self.child(&parent, part.span_name()),
            None => Span::none(),
        };
        Timed {
            observe: self.clone(),
            part,
            began: self.0.clock.now().uptime,
            _span: span,
        }
    }
}

/// A part of making a sandbox, until it is dropped.
pub(crate) struct Timed {
    observe: Observe,
    part: Part,
    began: std::time::Duration,
    _span: Span,
}

impl Drop for Timed {
    fn drop(&mut self) {
        let took = self.observe.0.clock.now().uptime.saturating_sub(self.began);
        self.observe.0.metrics.sandboxes.took(self.part, took);
    }
}

impl fmt::Debug for Observe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Observe")
    }
}
