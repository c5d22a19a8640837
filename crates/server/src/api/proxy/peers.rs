//! Connections between sandboxes of one private network: the server brings the stream to the
//! peer's port, the egress program holds the other end.

use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::splice::{Terms, splice};
use barchan_runtime::EXECD_PORT;
use barchan_wire::limits::PORT_STREAM_SILENCE_MS;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;

use super::Way;
use super::counted::Counted;
use crate::api::Api;
use crate::api::errors::Refusal;
use crate::lifecycle::Call;

/// Most streams between sandboxes at one time.
const STREAMS_MAX: usize = 4096;

impl Api {
    /// Brings streams for as long as the server runs. `now` is asked for each, as settings change.
    pub(crate) async fn join_peers(now: impl Fn() -> Arc<Self>) {
        let places = Arc::new(Semaphore::new(STREAMS_MAX));
        while let Some(call) = now().lifecycle.next_call().await {
            let api = now();
            let place = Arc::clone(&places).try_acquire_owned();
            let tasks = api.tasks.clone();
            tasks.spawn(async move {
                match place {
                    Ok(_place) => api.join_peer(call).await,
                    Err(_) => call.program.give_up(&call.id).await,
                }
            });
        }
    }

    async fn join_peer(&self, call: Call) {
        if let Err(refusal) = self.try_to_join(&call).await {
            tracing::debug!(peer = %call.peer, why = refusal.message(), "a peer is not reached");
            call.program.give_up(&call.id).await;
        }
    }

    async fn try_to_join(&self, call: &Call) -> Result<(), Refusal> {
        let id = call.peer.clone();
        self.lifecycle.running(&id)?;
        // The peer's daemon is asked, and connects to the program.
        let upstream = self.lifecycle.reach(&id, EXECD_PORT).await?;
        let _in_use = self.lifecycle.enter(&id, true);
        let way = Way::new(id, call.port, upstream);
        let (mut response, link) = self.begin_stream(&way).await?;
        let inside = hyper::upgrade::on(&mut response);
        let (near, inside, ()) =
            tokio::join!(call.program.bring(&call.id), inside, link.hand_over());
        let (Ok(near), Ok(inside)) = (near, inside) else {
            // Whoever called has gone, or the program inside has.
            return Ok(());
        };
        let counted = Counted::open(&self.observe.metrics().streams);
        let terms = Terms {
            silence: Duration::from_millis(PORT_STREAM_SILENCE_MS),
            listens: self.lifecycle.is_there(&way.id),
        };
        let count = |way, bytes| counted.moved(way, bytes);
        // Whoever breaks off has told the other side by that.
        let _ = splice(TokioIo::new(near), TokioIo::new(inside), terms, count).await;
        Ok(())
    }
}
