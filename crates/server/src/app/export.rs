//! What is sent to a collector, from the server's start until after its end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;

use super::live::Live;
use crate::observe::Exporter;

/// How long a stopping server waits for a collector to take the rest.
const FLUSH_WAIT: Duration = Duration::from_secs(3);

/// What sends, with a stop of its own: it goes on until there is nothing left to tell of.
pub(super) struct Export {
    tasks: Tasks,
    stop: Shutdown,
}

impl Export {
    /// Begins to send, if anything is to be sent.
    pub(super) fn begin(exporter: Option<Exporter>, live: &Arc<Live>) -> Self {
        let (tasks, stop) = (Tasks::new(), Shutdown::new());
        if let Some(exporter) = exporter {
            let clock = live.now().api.clock.clone();
            let live = Arc::downgrade(live);
            let gather = async move || gather(&live).await;
            tasks.spawn(exporter.run(clock, stop.clone(), gather));
        }
        Self { tasks, stop }
    }

    /// Sends what is left, as far as the collector takes it in time.
    pub(super) async fn end(&self) {
        self.stop.begin();
        if self.tasks.drain(FLUSH_WAIT).await > 0 {
            let seconds = FLUSH_WAIT.as_secs();
            tracing::warn!(seconds, "the collector did not take the last spans in time");
        }
    }
}

async fn gather(live: &Weak<Live>) -> Vec<prometheus::proto::MetricFamily> {
    match live.upgrade() {
        Some(live) => {
            let api = Arc::clone(&live.now().api);
            api.gather().await
        }
        None => Vec::new(),
    }
}
