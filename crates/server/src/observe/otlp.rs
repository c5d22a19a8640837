//! Hands spans and figures to a collector by OTLP, over HTTP or HTTPS with protobuf bodies. A
//! collector that is slow, gone or wrong costs spans, which are counted, and nothing else: the
//! queue is bounded, and so is every wait.

mod encode;
mod post;
mod tls;

use std::time::Duration;

use barchan_daemon::clock::{Clock, Now};
use barchan_daemon::shutdown::Shutdown;
use bytes::Bytes;
use prometheus::proto::MetricFamily;
use tokio::sync::mpsc;

use super::metrics::Otlp;
use super::span::{Finished, Tracer};
use encode::Resource;
use post::Failure;
pub(crate) use post::{BadEndpoint, Endpoint};

/// Most spans that wait to be sent, and most of one sending.
const QUEUE_MAX: usize = 2048;
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How often something is sent that the collector did not take for a reason that may pass, and how
/// long to wait before that.
const TRIES_MAX: u32 = 3;
const RETRY_FIRST: Duration = Duration::from_millis(500);

/// What is sent where.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) endpoint: Endpoint,
    /// The name under which the collector knows this server.
    pub(crate) service: String,
    /// The share of the traces that begin here which is sent, 0 to 1; `None` sends no spans.
    pub(crate) ratio: Option<f64>,
    /// How often figures are sent; `None` for never.
    pub(crate) metrics_every: Option<Duration>,
}

/// Sends what is to be sent, until it is told to stop.
#[derive(Debug)]
pub(crate) struct Exporter {
    spans: mpsc::Receiver<Finished>,
    sender: Sender,
    metrics_every: Option<Duration>,
}

/// Sends one thing at a time.
#[derive(Debug, Clone)]
struct Sender {
    endpoint: Endpoint,
    resource: Resource,
    figures: Otlp,
}

impl Plan {
    /// Where spans go from now on, and what sends them.
    pub(super) fn begin(self, figures: &Otlp, started: Now) -> (Tracer, Exporter) {
        let (queue, spans) = mpsc::channel(QUEUE_MAX);
        let tracer = match self.ratio {
            Some(ratio) => Tracer::new(queue, figures.spans_dropped.clone(), ratio),
            None => Tracer::off(),
        };
        let exporter = Exporter {
            spans,
            sender: Sender {
                endpoint: self.endpoint,
                resource: Resource::new(&self.service, started),
                figures: figures.clone(),
            },
            metrics_every: self.metrics_every,
        };
        (tracer, exporter)
    }
}

impl Exporter {
    /// Sends until the server stops, and then what is left. `gather` looks up all figures.
    pub(crate) async fn run<G>(self, clock: Clock, stop: Shutdown, gather: G)
    where
        G: AsyncFn() -> Vec<MetricFamily>,
    {
        let Self {
            spans,
            sender,
            metrics_every,
        } = self;
        let figures = async {
            if let Some(every) = metrics_every {
                sender.send_figures(&clock, every, &stop, gather).await;
            }
        };
        tokio::join!(sender.send_spans(spans, &stop), figures);
    }
}

impl Sender {
    async fn send_spans(&self, mut spans: mpsc::Receiver<Finished>, stop: &Shutdown) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let is_over = tokio::select! {
                biased;
                () = stop.begun() => true,
                taken = spans.recv_many(&mut batch, BATCH_MAX) => taken == 0,
            };
            if is_over {
                break;
            }
            let more = async {
                while batch.len() < BATCH_MAX {
                    let left = BATCH_MAX - batch.len();
                    if spans.recv_many(&mut batch, left).await == 0 {
                        return;
                    }
                }
            };
            tokio::select! {
                () = more => {}
                () = tokio::time::sleep(BATCH_WAIT) => {}
                () = stop.begun() => {}
            }
            self.send_batch(&mut batch, stop).await;
        }
        // What came before the word to stop; no more is asked for.
        spans.close();
        while spans.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.send_batch(&mut batch, stop).await;
        }
    }

    async fn send_batch(&self, batch: &mut Vec<Finished>, stop: &Shutdown) {
        if batch.is_empty() {
            return;
        }
        let count = batch.len() as u64;
        let body = encode::spans(&self.resource, batch);
        batch.clear();
        match self.send("/v1/traces", body, stop).await {
            Ok(answer) => {
                let refused = encode::refused_spans(&answer).min(count);
                self.figures.spans_sent.inc_by(count - refused);
                self.figures.spans_failed.inc_by(refused);
            }
            Err(error) => {
                tracing::debug!(%error, count, "spans were given up");
                self.figures.spans_failed.inc_by(count);
            }
        }
    }

    async fn send_figures<G>(&self, clock: &Clock, every: Duration, stop: &Shutdown, gather: G)
    where
        G: AsyncFn() -> Vec<MetricFamily>,
    {
        loop {
            let next = clock.now().uptime + every;
            tokio::select! {
                () = clock.sleep_until(next) => {}
                () = stop.begun() => {}
            }
            let families = gather().await;
            let body = encode::figures(&self.resource, &families, clock.now());
            match self.send("/v1/metrics", body, stop).await {
                Ok(_) => self.figures.metrics_sent.inc(),
                Err(error) => {
                    tracing::debug!(%error, "figures were given up");
                    self.figures.metrics_failed.inc();
                }
            }
            if stop.has_begun() {
                return;
            }
        }
    }

    /// Sends again what may be taken the next time; not while the server stops.
    async fn send(&self, path: &str, body: Bytes, stop: &Shutdown) -> Result<Bytes, Failure> {
        let mut wait = RETRY_FIRST;
        let mut tries = 1;
        loop {
            match self.endpoint.post(path, body.clone()).await {
                Err(failure) if failure.may_pass && tries < TRIES_MAX && !stop.has_begun() => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = stop.begun() => {}
                    }
                    wait *= 2;
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }
}
