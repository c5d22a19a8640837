//! Assembles the server: settings → state directory → store → runtime → listeners, and takes it
//! apart in the other order.

mod export;
mod first;
mod keys;
mod listen;
mod live;
mod make;
mod site;
mod tenancy;

use std::fmt;
use std::io;
use std::mem::take;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::shutdown::Shutdown;
use barchan_daemon::tasks::Tasks;
use barchan_runtime::Runtime;
use barchan_wire::lifecycle::ReloadReport;
use barchan_wire::local;
use tokio::sync::Semaphore;

use crate::activity::Activity;
pub use crate::api::BadSecrets;
use crate::api::{self, Api, Gate, Links, Pool, Reload, Tenancy};
use crate::approvals::Approvals;
use crate::config::{self, Settings, SettingsError};
use crate::lifecycle::{KeptPool, Lifecycle, LifecycleError, Parts};
use crate::observe::{BadFigures, Observe};
use crate::store::{Store, StoreError};
use export::Export;
use listen::{Door, Listener};
pub use live::Source;
use live::{Live, Snapshot};
use site::Site;
pub(crate) use site::advice;
pub use site::{SiteError, check, prepare};

/// Files of the state directory.
const DATABASE: &str = "barchan.db";
const KEY_FILE: &str = "api_key";
const SEED_FILE: &str = "token_seed";
const LINKS_FILE: &str = "link_keys";
const VAULT_FILE: &str = "vault_key";

/// How often an idle server asks itself whether to leave.
const IDLE_CHECK: Duration = Duration::from_millis(500);

/// A server that listens.
pub struct App {
    live: Arc<Live>,
    export: Export,
    tasks: Tasks,
    shutdown: Shutdown,
    address: Option<SocketAddr>,
    socket: PathBuf,
    site: Arc<Site>,
}

/// Has a server read its settings again. Clones mean the same server.
#[derive(Clone)]
pub struct Reloader(Weak<Live>);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory cannot be used.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server's own figures cannot be made.
    #[error(transparent)]
    Figures(#[from] BadFigures),
    /// The runtime could not be made.
    #[error("the runtime did not start: {0}")]
    Runtime(String),
    /// Snapshots are there of which the database does not know.
    #[error(
        "the database {database} is new, but {count} snapshots lie in {shelf} of which it should \
         know, and which a server without their records would remove: put the database back, from \
         a backup for example, as its folder's owner; to go on without these snapshots, move that \
         folder away"
    )]
    Forgotten {
        /// The database.
        database: PathBuf,
        /// How many snapshots there are.
        count: usize,
        /// Where they are.
        shelf: PathBuf,
    },
    /// Records and sandboxes could not be brought to agree.
    #[error("the sandboxes of the last run could not be taken up: {0}")]
    TakeUp(#[from] LifecycleError),
    /// The secrets of signed addresses cannot be used.
    #[error("the file {path} cannot be used: {source}")]
    Links {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BadSecrets,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {place}: {source}{}", listen::advice(source))]
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
        source: Source,
        clock: Clock,
        make: M,
    ) -> Result<Self, StartError>
    where
        M: FnOnce(PathBuf) -> R,
        R: Future<Output = Result<Arc<dyn Runtime>, E>>,
        E: fmt::Display,
    {
        let dir = config::state_dir(settings);
        let site = Arc::new(Site::take(&dir)?);
        let (listener, address) = listen::tcp(settings).await?;
        let socket = settings.server.socket.clone();
        let socket = socket.unwrap_or_else(|| dir.join(local::API_SOCKET));
        let unix = listen::unix(&socket).await?;
        let key = keys::gate(settings, &site)?;
        keys::tell(settings, &site);
        let seed = site.secret(SEED_FILE)?;
        let links = keys::links(settings, &site)?;
        let plan = make::plan(settings);
        let (observe, exporter) = Observe::new(clock.clone(), &api::operations(), plan)?;
        let database = site.path(DATABASE);
        let boot = site::boot();
        let (store, mut kept) =
            Store::measured(&database, &boot, Some(make::meter(&clock, &observe)))?;
        let store = Arc::new(store);
        let runtime = make(dir.clone())
            .await
            .map_err(|error| StartError::Runtime(error.to_string()))?;
        if kept.is_new {
            first::check_shelf(&*runtime, &dir, database).await?;
        }
        let pools = take(&mut kept.pools);
        let (tasks, shutdown) = (Tasks::new(), Shutdown::new());
        let hands = (&clock, &tasks, &shutdown);
        let tenancy = tenancy::open(settings, &site, (take(&mut kept.access), &store), hands)?;
        let asked = take(&mut kept.approvals);
        let approvals = Approvals::open(asked, Arc::clone(&store), hands);
        let parts = Parts {
            runtime,
            store: Arc::clone(&store),
            kept,
            clock: clock.clone(),
            observe: observe.clone(),
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
            terms: make::terms(settings),
            approvals,
            seals: keys::seals(&site),
        };
        let lifecycle = Lifecycle::open(parts, make::rules(settings)).await?;
        store.slot().await?.begin(&boot).kept().await?;
        open_pools(&lifecycle, pools, settings);
        let made = Made {
            lifecycle,
            gate: tenancy::gate(&tenancy, key, seed),
            tenancy,
            links,
            observe,
            clock,
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
            own_host: address.map_or_else(|| "localhost".to_owned(), |at| at.to_string()),
        };
        let live = made.live(settings, source, &site);
        let export = Export::begin(exporter, &live);
        let app = Self {
            live,
            export,
            tasks,
            shutdown,
            address,
            socket,
            site,
        };
        app.open(listener.into_iter().chain([unix]), settings);
        Ok(app)
    }

    fn open(&self, listeners: impl Iterator<Item = Listener>, settings: &Settings) {
        let places = settings.server.connections_max;
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        for listener in listeners {
            let door = Door {
                live: Arc::clone(&self.live),
                places: Arc::new(Semaphore::new(places)),
            };
            self.tasks.spawn(door.open(listener));
        }
        let (live, shutdown) = (Arc::clone(&self.live), self.shutdown.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = Api::join_peers(|| Arc::clone(&live.now().api)) => {}
                () = shutdown.begun() => {}
            }
        });
        let (pool, shutdown) = (self.pool(), self.shutdown.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = pool.sweep() => {}
                () = shutdown.begun() => {}
            }
        });
    }

    /// Has this server read its settings again.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::downgrade(&self.live))
    }

    fn pool(&self) -> Pool {
        self.live.now().api.proxy.pool.clone()
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
        self.pool().len()
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
        let grace = self.live.now().settings.server.shutdown_grace_s;
        let cut = self.tasks.drain(Duration::from_secs(grace)).await;
        if cut > 0 {
            tracing::warn!(cut, "requests were cut off at the end of the grace time");
        }
        // Behind all that there is to tell of.
        self.export.end().await;
    }

    async fn idle(&self) {
        let clock = self.live.now().api.clock.clone();
        loop {
            let limit = self.live.now().settings.server.idle_exit_s;
            let limit = limit.map(Duration::from_secs);
            let next = limit.map_or(IDLE_CHECK, |limit| IDLE_CHECK.min(limit));
            clock.sleep_until(clock.now().uptime + next).await;
            let now = self.live.now();
            let is_over = limit.is_some_and(|limit| now.api.activity.idle(&clock) >= limit);
            if is_over && now.api.lifecycle.is_empty() {
                return;
            }
        }
    }
}

/// Takes up the pools that were kept.
fn open_pools(lifecycle: &Lifecycle, pools: Vec<KeptPool>, settings: &Settings) {
    let admission = make::admission(settings);
    lifecycle.open_pools(pools, |pool| {
        admission.draft_of(pool, &lifecycle.capabilities())
    });
}

/// What the first reading of the settings is put together of.
struct Made {
    lifecycle: Lifecycle,
    gate: Gate,
    tenancy: Tenancy,
    links: Arc<Links>,
    observe: Observe,
    clock: Clock,
    tasks: Tasks,
    shutdown: Shutdown,
    own_host: String,
}

impl Made {
    fn live(self, settings: &Settings, source: Source, site: &Arc<Site>) -> Arc<Live> {
        Arc::new_cyclic(|live: &Weak<Live>| {
            let api = Api {
                lifecycle: self.lifecycle,
                gate: self.gate,
                tenancy: self.tenancy,
                links: self.links,
                strangers: Arc::default(),
                guard: make::guard(settings),
                admission: make::admission(settings),
                proxy: make::proxy(settings, &self.clock),
                activity: Activity::starting(&self.clock),
                observe: self.observe,
                metrics_for: make::readers(settings),
                access_log: make::access_log(settings),
                started: self.clock.now(),
                clock: self.clock,
                tasks: self.tasks,
                shutdown: self.shutdown,
                public_host: settings.server.public_host.clone(),
                own_host: self.own_host,
                body_wait: make::body_wait(settings),
                features: settings.features.clone(),
                reload: reload(Reloader(live.clone())),
            };
            let first = Snapshot::first(settings.clone(), api);
            Live::new(first, source, Arc::clone(site))
        })
    }
}

impl Reloader {
    /// Reads the settings again, and goes by them from now on; whatever needs a restart is named
    /// and stays.
    ///
    /// # Errors
    /// When there is a fault in them; nothing changes then.
    pub async fn reload(&self) -> Result<ReloadReport, SettingsError> {
        match self.0.upgrade() {
            Some(live) => live.reload().await,
            None => Err(SettingsError::Fixed),
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reloader")
    }
}

/// How a request has the settings read again.
fn reload(reloader: Reloader) -> Reload {
    Arc::new(move || {
        let reloader = reloader.clone();
        Box::pin(async move { reloader.reload().await })
    })
}

impl fmt::Debug for App {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("App")
            .field("address", &self.address)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
