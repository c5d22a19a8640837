//! The server's own figures.

use barchan_wire::lifecycle::code;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use prometheus::proto::MetricFamily;

use super::Api;
use super::errors::Refusal;
use super::reply::{self, Body};
use crate::observe::Metrics;

/// What is answered: the text format of Prometheus.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Who may read the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Nobody.
    Nobody,
    /// Whoever may use the API.
    WithKey,
    /// Everybody who reaches the server.
    Everybody,
}

impl Readers {
    /// What the setting says; `None` when that is no word for any of these.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Nobody),
            "key" => Some(Self::WithKey),
            "open" => Some(Self::Everybody),
            _ => None,
        }
    }
}

impl Api {
    /// `GET /metrics`.
    pub(super) async fn show_metrics(&self) -> Result<Response<Body>, Refusal> {
        if self.metrics_for == Readers::Nobody {
            let message = "this server's operator has switched it off with `observe.metrics`";
            return Err(Refusal::new(403, code::FEATURE_DISABLED, message));
        }
        let mut response = reply::text(200, Metrics::text(&self.gather().await));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// All figures of this moment.
    pub(crate) async fn gather(&self) -> Vec<MetricFamily> {
        let mut looked = self.lifecycle.look().await;
        looked.idle_links = self.proxy.pool.len() as u64;
        let metrics = self.observe.metrics();
        metrics.gather(&looked, self.started, self.clock.now())
    }

    /// Whether a path shows figures to whoever asks.
    pub(super) fn is_open_to_all(&self, path: &str) -> bool {
        self.metrics_for == Readers::Everybody && path == "/metrics"
    }
}
