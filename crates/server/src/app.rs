//! Assembles the server: settings → state directory → store → runtime → listeners, and takes it
//! apart in the other order.

mod listen;
mod site;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_runtime::{Limits, Runtime};
use barchan_wire::lifecycle::resources;
use barchan_wire::local;
use barchan_wire::secret::Secret;
use tokio::sync::Semaphore;

use crate::activity::Activity;
use crate::api::{Admission, Api, Gate, Guard, Pool, Proxy, Waits};
use crate::config::{self, Settings};
use crate::lifecycle::state::Spans;
use crate::lifecycle::{Lifecycle, LifecycleError, Parts, Rules};
use crate::store::{Store, StoreError};
use listen::{Doors, Listener};
use site::Site;
pub use site::SiteError;

/// Files of the state directory.
const DATABASE: &str = "barchan.db";
const KEY_FILE: &str = "api_key";
const SEED_FILE: &str = "token_seed";

/// How often an idle server asks itself whether to leave.
const IDLE_CHECK: Duration = Duration::from_millis(500);

/// A server that listens.
pub struct App {
    api: Arc<Api>,
    tasks: Tasks,
    shutdown: Shutdown,
    address: Option<SocketAddr>,
    socket: PathBuf,
    idle_exit: Option<Duration>,
    grace: Duration,
    site: Site,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory cannot be used.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime could not be made.
    #[error("the runtime did not start: {0}")]
    Runtime(String),
    /// Records and sandboxes could not be brought to agree.
    #[error("the sandboxes of the last run could not be taken up: {0}")]
    TakeUp(#[from] LifecycleError),
    /// An address cannot be listened on.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// The address.
        place: String,
        /// What the system says.
        source: io::Error,
    },
}

impl App {
    /// Takes the state directory, listens, makes the runtime, and takes up what the last run left;
    /// who calls meanwhile waits. `make` is called once the directory is this process's alone.
    ///
    /// # Errors
    /// When any of that fails; nothing listens any more then.
    pub async fn start<M, R, E>(
        settings: &Settings,
        clock: Clock,
        make: M,
    ) -> Result<Self, StartError>
    where
        M: FnOnce(PathBuf) -> R,
        R: Future<Output = Result<Arc<dyn Runtime>, E>>,
        E: fmt::Display,
    {
        let dir = config::state_dir(settings);
        let site = Site::take(&dir)?;
        let (listener, address) = listen::tcp(settings).await?;
        let socket = settings.server.socket.clone();
        let socket = socket.unwrap_or_else(|| site.path(local::API_SOCKET));
        let unix = listen::unix(&socket).await?;
        let key = key(settings, &site)?;
        let seed = site.secret(SEED_FILE)?;
        let (store, records) = Store::open(&site.path(DATABASE))?;
        let runtime = make(dir)
            .await
            .map_err(|error| StartError::Runtime(error.to_string()))?;
        let (tasks, shutdown) = (Tasks::new(), Shutdown::new());
        let parts = Parts {
            runtime,
            store,
            records,
            clock: clock.clone(),
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
        };
        let lifecycle = Lifecycle::open(parts, rules(settings)).await?;
        let keep = Duration::from_secs(settings.proxy.idle_s.max(1));
        let api = Arc::new(Api {
            lifecycle,
            gate: Gate::new(key, seed),
            guard: Guard::new(
                settings.server.host.is_loopback(),
                &settings.server.allowed_hosts,
            ),
            admission: admission(settings),
            proxy: Proxy {
                pool: Pool::new(clock.clone(), keep),
                waits: waits(settings),
            },
            activity: Activity::starting(&clock),
            clock,
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
            public_host: settings.server.public_host.clone(),
            own_host: address.map_or_else(|| "localhost".to_owned(), |at| at.to_string()),
            body_wait: Duration::from_secs(settings.server.body_wait_s.max(1)),
        });
        let app = Self {
            api,
            tasks,
            shutdown,
            address,
            socket,
            idle_exit: settings.server.idle_exit_s.map(Duration::from_secs),
            grace: Duration::from_secs(settings.server.shutdown_grace_s),
            site,
        };
        app.open(
            listener.into_iter().chain([unix]),
            settings.server.connections_max,
        );
        Ok(app)
    }

    fn open(&self, listeners: impl Iterator<Item = Listener>, connections_max: usize) {
        let doors = Doors {
            api: Arc::clone(&self.api),
            places: Arc::new(Semaphore::new(
                connections_max.clamp(1, Semaphore::MAX_PERMITS),
            )),
        };
        for listener in listeners {
            self.tasks.spawn(doors.clone().open(listener));
        }
        let (api, shutdown) = (Arc::clone(&self.api), self.shutdown.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = api.proxy.pool.sweep() => {}
                () = shutdown.begun() => {}
            }
        });
    }

    /// The TCP address it listens on.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The Unix socket it listens on.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The file that holds the API's key, unless the settings do.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.site.path(KEY_FILE)
    }

    /// Says when to stop.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// How many connections into sandboxes wait for their next request.
    #[must_use]
    pub fn idle_links(&self) -> usize {
        self.api.proxy.pool.len()
    }

    /// Serves until it is told to stop or has been idle for as long as the settings say; then
    /// finishes what is under way. Sandboxes run on.
    pub async fn run(self) {
        let idle = self.idle();
        tokio::select! {
            () = self.shutdown.begun() => tracing::info!("stopping"),
            () = idle => tracing::info!("stopping: nobody needs this server"),
        }
        self.shutdown.begin();
        // Nobody is to find a socket that no one answers.
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(%error, "the Unix socket is gone already");
        }
        let cut = self.tasks.drain(self.grace).await;
        if cut > 0 {
            tracing::warn!(cut, "requests were cut off at the end of the grace time");
        }
    }

    async fn idle(&self) {
        let Some(limit) = self.idle_exit else {
            return std::future::pending().await;
        };
        let clock = &self.api.clock;
        loop {
            clock
                .sleep_until(clock.now().uptime + IDLE_CHECK.min(limit))
                .await;
            if self.api.lifecycle.is_empty() && self.api.activity.idle(clock) >= limit {
                return;
            }
        }
    }
}

impl fmt::Debug for App {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("App")
            .field("address", &self.address)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// The key of the API: the settings', else one that is made at the first start. An empty one in
/// the settings asks for none.
fn key(settings: &Settings, site: &Site) -> Result<Option<Secret>, SiteError> {
    if let Some(key) = &settings.server.api_key {
        if key.reveal().is_empty() {
            tracing::warn!("no API key is asked for: any local program may use this server");
            return Ok(None);
        }
        return Ok(Some(key.clone()));
    }
    let key = site.secret(KEY_FILE)?;
    tracing::info!(file = %site.path(KEY_FILE).display(), "the API key is in this file");
    Ok(Some(key))
}

fn rules(settings: &Settings) -> Rules {
    let spans = Spans {
        ended_retention: Duration::from_secs(settings.store.ended_retention_s),
    };
    Rules {
        spans,
        sandboxes_max: settings.limits.sandboxes_max,
        verb_wait: Duration::from_secs(settings.runtime.verb_wait_s.max(1)),
        reconcile_interval: Duration::from_secs(settings.runtime.reconcile_interval_s.max(1)),
    }
}

fn waits(settings: &Settings) -> Waits {
    Waits {
        connect: Duration::from_millis(settings.proxy.connect_wait_ms),
        answer: Duration::from_secs(settings.proxy.answer_wait_s.max(1)),
    }
}

fn admission(settings: &Settings) -> Admission {
    let (default, max) = (&settings.limits.default, &settings.limits.max);
    let cpu = |text: &Option<String>| text.as_deref().and_then(resources::cpu_millis);
    let bytes = |text: &Option<String>| text.as_deref().and_then(resources::bytes);
    Admission {
        timeout_s_max: settings.server.max_sandbox_timeout_seconds,
        default: Limits {
            cpu_millis: cpu(&default.cpu),
            memory_bytes: bytes(&default.memory),
            pids: Some(default.pids),
            disk_bytes: resources::bytes(&default.disk),
        },
        max: Limits {
            cpu_millis: cpu(&max.cpu),
            memory_bytes: bytes(&max.memory),
            pids: max.pids,
            disk_bytes: bytes(&max.disk),
        },
        strict: settings.limits.strict.unwrap_or_else(config::is_root),
        arch: if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        },
    }
}
