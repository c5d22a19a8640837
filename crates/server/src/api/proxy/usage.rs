//! Asks a sandbox's daemon what the sandbox uses, without counting as a use of it.

use std::time::Duration;

use barchan_runtime::EXECD_PORT;
use barchan_wire::execd::metrics::Metrics;
use barchan_wire::id::SandboxId;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Limited};

use super::Way;
use super::counted::Counted;
use super::link::Upload;
use super::relay::Relay;
use crate::api::Api;

/// Longest time for the answer, and most bytes of it.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: usize = 16 * 1024;

impl Api {
    /// What a running sandbox uses; `None` when its daemon does not say so in time.
    // BOUNDARY: sandbox → host. Test: a_hostile_daemon_does_not_hold_up_diagnostics
    pub(in crate::api) async fn usage(&self, id: &SandboxId) -> Option<Metrics> {
        let asked = tokio::time::timeout(ANSWER_WAIT, self.ask_for_usage(id));
        let answer = asked.await.ok()??;
        serde_json::from_slice(&answer).ok()
    }

    async fn ask_for_usage(&self, id: &SandboxId) -> Option<Bytes> {
        let upstream = self.lifecycle.reach(id, EXECD_PORT).await.ok()?;
        let way = Way::new(id.clone(), EXECD_PORT, upstream);
        let streams = &self.observe.metrics().streams;
        let (moved, bytes) = (std::sync::Arc::default(), streams.bytes_in.clone());
        let nothing = Upload::whole(Bytes::new(), std::sync::Arc::clone(&moved), bytes);
        let mut request = Request::get("/metrics").body(nothing).ok()?;
        let host = HeaderValue::from_static("127.0.0.1:44772");
        request.headers_mut().insert(HOST, host);
        let (response, link) = self.exchange(&way, request, &moved).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let counted = Counted::open(streams);
        let pool = self.proxy.pool.clone();
        let relay = Relay::new(response.into_body(), link, pool, way.id, counted, None);
        let body = Limited::new(relay, ANSWER_BYTES_MAX).collect().await.ok()?;
        Some(body.to_bytes())
    }
}
