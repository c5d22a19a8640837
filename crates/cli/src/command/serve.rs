//! `barchan serve`: settings, runtime, server, and the wait for the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_daemon::telemetry;
use barchan_runtime::Runtime;
use barchan_server::config::{Loaded, Settings};
use barchan_server::{App, Reloader, Source};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Global, Serve};
use crate::{config, native};

/// How long a private server stays when nobody needs it, in seconds.
const PRIVATE_IDLE_S: u64 = 300;
/// How long the runtime's own task may take to end, in milliseconds.
const RUNTIME_DRAIN_MS: u64 = 1_000;

pub(super) async fn run(global: &Global, flags: Serve) -> Result<()> {
    let global = global.clone();
    let read = move || {
        let mut loaded = config::server_settings(&global, flags.config.as_deref())?;
        if flags.private {
            make_private(&mut loaded.settings);
        }
        Ok(loaded)
    };
    let Loaded {
        settings, warnings, ..
    } = read()?;
    let level = telemetry::init(&settings.log.level, settings.log.json)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let adopt = move |settings: &Settings| {
        // The level was checked with the other settings.
        if let Err(error) = level.set(&settings.log.level) {
            tracing::error!(%error, "the log keeps its level");
        }
    };
    let tasks = Tasks::new();
    let runtime = async |_| start_runtime(&settings, &tasks).await;
    let source = Source::new(read, adopt);
    let app = App::start(&settings, source, Clock::system(), runtime).await?;
    announce(&app);
    let (signals, reloader) = (app.shutdown(), app.reloader());
    let served = tokio::select! {
        () = app.run() => Ok(()),
        error = fail_to_listen(&signals) => Err(error),
        error = reload_on_signal(&reloader) => Err(error),
    };
    tasks.drain(Duration::from_millis(RUNTIME_DRAIN_MS)).await;
    served
}

/// Reads the settings again at each SIGHUP, for ever; returns only when it cannot be heard.
async fn reload_on_signal(reloader: &Reloader) -> anyhow::Error {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => return anyhow::Error::new(error).context("cannot listen for SIGHUP"),
    };
    while hangups.recv().await.is_some() {
        if let Err(error) = reloader.reload().await {
            tracing::error!("SIGHUP changes nothing: {error}");
        }
    }
    std::future::pending().await
}

async fn start_runtime(settings: &Settings, tasks: &Tasks) -> Result<Arc<dyn Runtime>> {
    let (runtime, hearing) = native::start(settings, native::Role::Server).await?;
    tasks.spawn(hearing);
    Ok(runtime)
}

/// For one user: no port, and an end when nothing is left to do.
fn make_private(settings: &mut Settings) {
    settings.server.tcp = false;
    settings.server.socket = None;
    settings.server.idle_exit_s.get_or_insert(PRIVATE_IDLE_S);
}

fn announce(app: &App) {
    let (socket, key) = (app.socket().display(), app.key_file());
    match app.address() {
        Some(address) => {
            tracing::info!(%address, %socket, key_file = %key.display(), "listening");
        }
        None => tracing::info!(%socket, "listening"),
    }
}

/// Passes the first signal on as the word to stop, and then waits for ever; returns only when
/// signals cannot be heard.
async fn fail_to_listen(shutdown: &Shutdown) -> anyhow::Error {
    match shutdown
        .on_signal()
        .await
        .context("cannot listen for signals")
    {
        Ok(signal) => {
            tracing::info!(signal, "told to stop");
            std::future::pending().await
        }
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_server_opens_no_port_and_leaves() {
        let mut settings = Settings::parse("[server]\nsocket = \"/tmp/other\"\n").unwrap();
        make_private(&mut settings);
        assert!(!settings.server.tcp);
        assert_eq!(settings.server.socket, None);
        assert_eq!(settings.server.idle_exit_s, Some(PRIVATE_IDLE_S));
        let mut settings = Settings::parse("[server]\nidle_exit_s = 5\n").unwrap();
        make_private(&mut settings);
        assert_eq!(settings.server.idle_exit_s, Some(5));
    }
}
