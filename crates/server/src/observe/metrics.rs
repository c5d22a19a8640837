//! What is counted, for whoever watches the server. Counting is an addition to a number: every
//! series is made at the start, so their number never grows, and no label holds a caller's words.

mod looked;
mod make;
mod page;
mod requests;
mod sandboxes;

use barchan_daemon::clock::Now;
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, IntCounter, IntGauge, Registry, Result, TextEncoder};

use looked::Gauges;
pub(crate) use looked::{Looked, STATES, Volumes};
use make::{Described, Maker, SHORT_S};
pub use page::reference;
pub(crate) use requests::{Answered, Requests};
pub(crate) use sandboxes::{Allocated, Part, Sandboxes};

/// Every figure.
pub(crate) struct Metrics {
    registry: Registry,
    described: Vec<Described>,
    pub(crate) requests: Requests,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) streams: Streams,
    pub(crate) clients: Clients,
    /// From a record's being handed in to its being kept.
    pub(crate) store_seconds: Histogram,
    pub(crate) otlp: Otlp,
    gauges: Gauges,
}

/// What goes through the proxy.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    /// Answers and sockets that have begun and are not over.
    pub(crate) open: IntGauge,
    /// Bytes of callers into sandboxes.
    pub(crate) bytes_in: IntCounter,
    /// Bytes of sandboxes to callers.
    pub(crate) bytes_out: IntCounter,
}

/// What clients say of the sandboxes that they asked for.
#[derive(Debug)]
pub(crate) struct Clients {
    succeeded: IntCounter,
    failed: IntCounter,
    seconds: Histogram,
}

/// What was sent to a collector, and what was not.
#[derive(Debug, Clone)]
pub(crate) struct Otlp {
    pub(crate) spans_sent: IntCounter,
    /// They found the queue full.
    pub(crate) spans_dropped: IntCounter,
    /// The collector did not take them.
    pub(crate) spans_failed: IntCounter,
    pub(crate) metrics_sent: IntCounter,
    pub(crate) metrics_failed: IntCounter,
}

impl Metrics {
    pub(super) fn new(operations: &[String]) -> Result<Self> {
        let mut maker = Maker::default();
        let requests = Requests::new(&mut maker, operations)?;
        let sandboxes = Sandboxes::new(&mut maker)?;
        let streams = Streams::new(&mut maker)?;
        let clients = Clients::new(&mut maker)?;
        let store_seconds = maker.histogram(
            "barchan_store_write_seconds",
            "Time from a change's being handed to the store until it is kept.",
            &SHORT_S,
        )?;
        let otlp = Otlp::new(&mut maker)?;
        let gauges = Gauges::new(&mut maker)?;
        let (registry, described) = maker.finish();
        Ok(Self {
            registry,
            described,
            requests,
            sandboxes,
            streams,
            clients,
            store_seconds,
            otlp,
            gauges,
        })
    }

    /// All figures, those that are looked up among them.
    pub(crate) fn gather(&self, looked: &Looked, started: Now, now: Now) -> Vec<MetricFamily> {
        self.gauges.set(looked, started, now);
        self.registry.gather()
    }

    /// Figures as Prometheus reads them.
    pub(crate) fn text(families: &[MetricFamily]) -> String {
        // Families of a registry are never empty or wrong.
        TextEncoder::new()
            .encode_to_string(families)
            .unwrap_or_default()
    }
}

impl Streams {
    fn new(maker: &mut Maker) -> Result<Self> {
        let open = maker.gauge(
            "barchan_proxy_streams",
            "Answers of programs in sandboxes, and sockets to them, that are under way.",
        )?;
        let bytes = maker.counters(
            "barchan_proxy_bytes_total",
            "Bytes of bodies and sockets that went into sandboxes (`in`) and out of them (`out`).",
            &["direction"],
        )?;
        Ok(Self {
            open,
            bytes_in: bytes.get_metric_with_label_values(&["in"])?,
            bytes_out: bytes.get_metric_with_label_values(&["out"])?,
        })
    }
}

impl Clients {
    fn new(maker: &mut Maker) -> Result<Self> {
        let creates = maker.counters(
            "barchan_client_creates_total",
            "Creates that clients reported at `POST /v1/metrics/events`.",
            &["result"],
        )?;
        Ok(Self {
            succeeded: creates.get_metric_with_label_values(&["ok"])?,
            failed: creates.get_metric_with_label_values(&["failed"])?,
            seconds: maker.histogram(
                "barchan_client_create_seconds",
                "Time of the creates that clients reported, as they saw it.",
                &SHORT_S,
            )?,
        })
    }

    /// Counts what a client said.
    pub(crate) fn reported(&self, is_success: bool, took_ms: u64) {
        match is_success {
            true => self.succeeded.inc(),
            false => self.failed.inc(),
        }
        self.seconds
            .observe(std::time::Duration::from_millis(took_ms).as_secs_f64());
    }
}

impl Otlp {
    fn new(maker: &mut Maker) -> Result<Self> {
        let sent = maker.counters(
            "barchan_otlp_sent_total",
            "Spans, and sendings of all figures, that the OTLP collector took.",
            &["signal"],
        )?;
        let dropped = maker.counters(
            "barchan_otlp_dropped_total",
            "Spans, and sendings of all figures, that were given up: the queue was full (`queue`), \
             or the OTLP collector did not take them (`collector`).",
            &["signal", "reason"],
        )?;
        Ok(Self {
            spans_sent: sent.get_metric_with_label_values(&["spans"])?,
            spans_dropped: dropped.get_metric_with_label_values(&["spans", "queue"])?,
            spans_failed: dropped.get_metric_with_label_values(&["spans", "collector"])?,
            metrics_sent: sent.get_metric_with_label_values(&["metrics"])?,
            metrics_failed: dropped.get_metric_with_label_values(&["metrics", "collector"])?,
        })
    }
}

#[cfg(test)]
mod tests;
