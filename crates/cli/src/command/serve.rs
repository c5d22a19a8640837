//! `barchan serve`: settings, runtime, server, and the wait for the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_daemon::telemetry::{self, Level};
use barchan_runtime::Runtime;
use barchan_server::config::{Loaded, Settings, SettingsError};
use barchan_server::{App, Reloader, Source};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Global, Serve};
use crate::{config, keeper, native};

/// How long a private server stays when nobody needs it, in seconds.
const PRIVATE_IDLE_S: u64 = 300;
/// How long the runtime's own task may take to end, in milliseconds.
const RUNTIME_DRAIN_MS: u64 = 1_000;

pub(super) async fn run(global: &Global, flags: Serve) -> Result<u8> {
    if flags.kept {
        return serve_kept(flags.private).await.map(|()| 0);
    }
    let (own, file) = (global.clone(), flags.config.clone());
    let is_private = flags.private;
    let read = move || {
        let mut loaded = config::server_settings(&own, file.as_deref())?;
        if is_private {
            make_private(&mut loaded.settings);
        }
        Ok(loaded)
    };
    let (settings, level) = begin(read()?)?;
    if let Some(user) = keeper::user(&settings)? {
        return keeper::run(global, &flags, settings, level, user).await;
    }
    let tasks = Tasks::new();
    let runtime = async || {
        let (runtime, hearing) = native::start(&settings, native::Role::Server).await?;
        tasks.spawn(hearing);
        Ok(runtime as Arc<dyn Runtime>)
    };
    let served = serve(
        &settings,
        source(read, level),
        runtime,
        std::future::pending(),
    )
    .await;
    tasks.drain(Duration::from_millis(RUNTIME_DRAIN_MS)).await;
    served.map(|()| 0)
}

/// Serves as a user without rights; the process that started this one makes the sandboxes.
async fn serve_kept(is_private: bool) -> Result<()> {
    let (remote, hearing) = keeper::reach()?;
    let tasks = Tasks::new();
    let hearing = tasks.spawn(hearing);
    let read = {
        let (remote, here) = (Arc::clone(&remote), Handle::current());
        move || {
            let mut loaded = here.block_on(keeper::settings(&remote))?;
            if is_private {
                make_private(&mut loaded.settings);
            }
            Ok(loaded)
        }
    };
    let mut first = tokio::task::block_in_place(&read)?;
    // The keeper has told of them.
    first.warnings.clear();
    let (settings, level) = begin(first)?;
    let runtime = async || {
        remote.start().await?;
        Ok(Arc::clone(&remote) as Arc<dyn Runtime>)
    };
    let gone = async { drop(hearing.await) };
    serve(&settings, source(read, level), runtime, gone).await
}

/// Logs from here on, the doubts about these settings first.
fn begin(loaded: Loaded) -> Result<(Settings, Level)> {
    let Loaded {
        settings, warnings, ..
    } = loaded;
    let level = telemetry::init(&settings.log.level, settings.log.json)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok((settings, level))
}

fn source(
    read: impl Fn() -> Result<Loaded, SettingsError> + Send + Sync + 'static,
    level: Level,
) -> Source {
    Source::new(read, move |settings: &Settings| {
        // The level was checked with the other settings.
        if let Err(error) = level.set(&settings.log.level) {
            tracing::error!(%error, "the log keeps its level");
        }
    })
}

/// Serves until it is told to stop, or what makes the sandboxes is gone.
async fn serve(
    settings: &Settings,
    source: Source,
    runtime: impl AsyncFnOnce() -> Result<Arc<dyn Runtime>>,
    gone: impl Future<Output = ()>,
) -> Result<()> {
    let app = App::start(settings, source, Clock::system(), async |_| runtime().await).await?;
    announce(&app);
    let (signals, reloader) = (app.shutdown(), app.reloader());
    let stop = signals.clone();
    let orphaned = async {
        gone.await;
        stop.begin();
        std::future::pending().await
    };
    tokio::select! {
        () = app.run() => Ok(()),
        () = orphaned => Ok(()),
        error = fail_to_listen(&signals) => Err(error),
        error = reload_on_signal(&reloader) => Err(error),
    }
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
