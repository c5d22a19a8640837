//! Spans: what was done when and for how long, until it is handed to whoever collects them. Nobody
//! ever waits for that: what does not fit into the queue is dropped and counted.

use std::time::Duration;

use barchan_daemon::clock::{Clock, Now};
use prometheus::IntCounter;
use tokio::sync::mpsc;

use super::context::{Context, RATIO_BITS};

/// Most attributes of a span, and longest value of one, in bytes.
const ATTRIBUTES_MAX: usize = 16;
const VALUE_BYTES_MAX: usize = 256;

/// Whose work a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request of a caller.
    Server,
    /// Work of ours.
    Internal,
}

/// A span that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(super) context: Context,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) began: Now,
    pub(super) took: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) failure: Option<String>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}

/// Where spans go. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Tracer(Option<On>);

#[derive(Debug, Clone)]
struct On {
    queue: mpsc::Sender<Finished>,
    dropped: IntCounter,
    /// Numbers below this are collected.
    bound: u64,
}

/// A span that has begun. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Span(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    tracer: Tracer,
    clock: Clock,
    span: Finished,
}

impl Tracer {
    /// Nobody collects spans.
    pub(crate) fn off() -> Self {
        Self(None)
    }

    /// They go into a queue. Of the traces that begin here, a share is collected.
    pub(super) fn new(queue: mpsc::Sender<Finished>, dropped: IntCounter, ratio: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a number of bits that a float holds near enough"
        )]
        let bound = (ratio.clamp(0.0, 1.0) * (1_u64 << RATIO_BITS) as f64) as u64;
        Self(Some(On {
            queue,
            dropped,
            bound,
        }))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a trace of this number is collected.
    pub(super) fn takes(&self, number: u64) -> bool {
        self.0.as_ref().is_some_and(|on| number < on.bound)
    }

    fn hand_in(&self, span: Finished) {
        if let Some(on) = &self.0
            && on.queue.try_send(span).is_err()
        {
            on.dropped.inc();
        }
    }
}

impl Span {
    /// A span that nobody collects.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(super) fn open(
        tracer: Tracer,
        clock: Clock,
        context: Context,
        parent: Option<[u8; 8]>,
        name: String,
        kind: Kind,
    ) -> Self {
        let span = Finished {
            context,
            parent,
            name,
            kind,
            began: clock.now(),
            took: Duration::ZERO,
            attributes: Vec::new(),
            failure: None,
        };
        Self(Some(Box::new(Open {
            tracer,
            clock,
            span,
        })))
    }

    /// Whether somebody collects it.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// What work below it continues.
    pub(crate) fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|open| open.span.context.clone())
    }

    /// Says something of it. Long texts are cut.
    pub(crate) fn set(&mut self, key: &'static str, text: &str) {
        self.add(key, |cut| Value::Text(cut(text)));
    }

    /// Says a number of it.
    pub(crate) fn set_number(&mut self, key: &'static str, number: i64) {
        self.add(key, |_| Value::Number(number));
    }

    fn add(&mut self, key: &'static str, value: impl FnOnce(fn(&str) -> String) -> Value) {
        if let Some(open) = &mut self.0
            && open.span.attributes.len() < ATTRIBUTES_MAX
        {
            open.span.attributes.push((key, value(cut)));
        }
    }

    /// Says that the work failed, in one word or a sentence of ours.
    pub(crate) fn fail(&mut self, why: &str) {
        if let Some(open) = &mut self.0 {
            open.span.failure = Some(cut(why));
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let Open {
                tracer,
                clock,
                mut span,
            } = *open;
            span.took = clock.now().uptime.saturating_sub(span.began.uptime);
            tracer.hand_in(span);
        }
    }
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn span(tracer: &Tracer, name: &str) -> Span {
        let (clock, _) = Clock::manual(Timestamp::UNIX_EPOCH);
        let context = Context::root(|_| true);
        let (name, kind) = (name.to_owned(), Kind::Internal);
        Span::open(tracer.clone(), clock, context, None, name, kind)
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts_and_never_waits() {
        let dropped = IntCounter::new("dropped", "dropped").unwrap();
        let (queue, mut spans) = mpsc::channel(2);
        let tracer = Tracer::new(queue, dropped.clone(), 1.0);
        for name in ["a", "b", "c", "d"] {
            drop(span(&tracer, name));
        }
        assert_eq!(dropped.get(), 2);
        assert_eq!(spans.recv().await.unwrap().name, "a");
        drop(span(&tracer, "e"));
        assert_eq!(dropped.get(), 2, "there is room again");
        drop(spans);
        drop(span(&tracer, "f"));
        assert_eq!(dropped.get(), 3, "nobody takes any more");
    }

    #[tokio::test]
    async fn what_is_said_of_a_span_is_bounded() {
        let (queue, mut spans) = mpsc::channel(1);
        let tracer = Tracer::new(queue, IntCounter::new("d", "d").unwrap(), 1.0);
        let mut span = span(&tracer, "a");
        for _ in 0..100 {
            span.set("key", &"é".repeat(100_000));
        }
        span.fail(&"x".repeat(100_000));
        drop(span);
        let span = spans.recv().await.unwrap();
        assert_eq!(span.attributes.len(), ATTRIBUTES_MAX);
        let long = |value: &Value| matches!(value, Value::Text(it) if it.len() > VALUE_BYTES_MAX);
        assert!(!span.attributes.iter().any(|(_, value)| long(value)));
        assert_eq!(span.failure.unwrap().len(), VALUE_BYTES_MAX);
    }

    #[test]
    fn a_share_of_the_traces_is_taken() {
        let (queue, _spans) = mpsc::channel(1);
        let dropped = IntCounter::new("d", "d").unwrap();
        let all = (1_u64 << RATIO_BITS) - 1;
        for (ratio, number, is_taken) in [
            (1.0, all, true),
            (0.0, 0, false),
            (0.5, all / 2, true),
            (0.5, all / 2 + 2, false),
            (7.0, all, true),
            (-1.0, 0, false),
        ] {
            let tracer = Tracer::new(queue.clone(), dropped.clone(), ratio);
            assert_eq!(tracer.takes(number), is_taken, "{ratio} {number}");
        }
        assert!(!Tracer::off().takes(0));
    }
}
