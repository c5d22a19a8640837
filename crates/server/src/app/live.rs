//! What a server goes by, as one value that is replaced whole when the settings are read again.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use barchan_wire::lifecycle::ReloadReport;

use super::site::Site;
use super::{keys, make, tenancy};
use crate::api::{Api, Gate, Links, Proxy};
use crate::config::{Finding, Loaded, Origin, Settings, SettingsError, merge};

/// One reading of the settings and all that was made of it.
pub(super) struct Snapshot {
    /// How often settings were taken over before.
    revision: u64,
    pub(super) settings: Settings,
    pub(super) api: Arc<Api>,
    pub(super) head_wait: Duration,
}

/// How the settings of a running server are read again, and who else goes by them.
pub struct Source {
    read: Box<dyn Fn() -> Result<Loaded, SettingsError> + Send + Sync>,
    adopt: Box<dyn Fn(&Settings) + Send + Sync>,
}

impl Source {
    /// `read` reads them, as at the start; `adopt` is called with those that are taken over.
    #[must_use]
    pub fn new(
        read: impl Fn() -> Result<Loaded, SettingsError> + Send + Sync + 'static,
        adopt: impl Fn(&Settings) + Send + Sync + 'static,
    ) -> Self {
        Self {
            read: Box::new(read),
            adopt: Box::new(adopt),
        }
    }

    /// Settings that are never read again.
    #[must_use]
    pub fn fixed() -> Self {
        Self::new(|| Err(SettingsError::Fixed), |_| {})
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Source")
    }
}

/// The snapshot of the moment, and what makes the next.
pub(super) struct Live {
    now: RwLock<Arc<Snapshot>>,
    source: Source,
    site: Arc<Site>,
    /// One reading after the other.
    turn: tokio::sync::Mutex<()>,
}

impl Snapshot {
    pub(super) fn first(settings: Settings, api: Api) -> Self {
        Self::of(0, settings, api)
    }

    fn of(revision: u64, settings: Settings, api: Api) -> Self {
        Self {
            revision,
            head_wait: Duration::from_secs(settings.server.head_wait_s.max(1)),
            api: Arc::new(api),
            settings,
        }
    }
}

impl Live {
    pub(super) fn new(first: Snapshot, source: Source, site: Arc<Site>) -> Self {
        Self {
            now: RwLock::new(Arc::new(first)),
            source,
            site,
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// What the server goes by at this moment. Whoever does one thing asks once.
    pub(super) fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the settings again and goes by them from now on, or changes nothing. It comes to its
    /// end even if whoever asked for it goes away: half of it would be neither.
    pub(super) async fn reload(self: Arc<Self>) -> Result<ReloadReport, SettingsError> {
        let tasks = self.now().api.tasks.clone();
        match tasks.spawn(self.take_over()).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(SettingsError::Fixed),
        }
    }

    async fn take_over(self: Arc<Self>) -> Result<ReloadReport, SettingsError> {
        let _turn = self.turn.lock().await;
        let this = Arc::clone(&self);
        // Files may lie where reading takes long.
        let read = tokio::task::spawn_blocking(move || this.next()).await;
        let (next, report) = read.unwrap_or(Err(SettingsError::Fixed))?;
        let next = Arc::new(next);
        {
            let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
            *now = Arc::clone(&next);
            // Nobody goes by the next settings before their key is known, or the other way round.
            next.api.tenancy.access.operator_is(next.api.gate.mark());
        }
        let changed = report.changed.join(" ");
        tracing::info!(revision = report.revision, changed, "settings read again");
        for key in &report.needs_restart {
            tracing::warn!(
                key,
                "this setting stays as it is until the server is restarted"
            );
        }
        for warning in &report.warnings {
            tracing::warn!("{warning}");
        }
        // Behind this word of it, which another level might not let through.
        (self.source.adopt)(&next.settings);
        Ok(report)
    }

    fn next(&self) -> Result<(Snapshot, ReloadReport), SettingsError> {
        let read = (self.source.read)()?;
        let running = self.now();
        let change = merge(&running.settings, &read.settings);
        let settings = change.settings;
        let key = keys::gate(&settings, &self.site).map_err(|error| unusable(&error))?;
        let links = keys::links(&settings, &self.site).map_err(|error| unusable(&error))?;
        let revision = running.revision + 1;
        let report = ReloadReport {
            revision,
            changed: change.changed,
            needs_restart: change.needs_restart,
            warnings: read.warnings.iter().map(Finding::to_string).collect(),
        };
        let gate = running.api.gate.with_key(key);
        let api = renewed(&running.api, &settings, gate, links);
        Ok((Snapshot::of(revision, settings, api), report))
    }
}

/// The same server by other settings.
fn renewed(api: &Api, settings: &Settings, gate: Gate, links: Arc<Links>) -> Api {
    api.proxy.pool.keep_for(make::keep(settings));
    if let Some(terms) = make::terms(settings) {
        api.lifecycle.guard_by(terms);
    }
    Api {
        lifecycle: api.lifecycle.under(make::rules(settings)),
        gate,
        links,
        tenancy: tenancy::renewed(&api.tenancy, settings),
        guard: make::guard(settings),
        admission: make::admission(settings),
        proxy: Proxy {
            pool: api.proxy.pool.clone(),
            waits: make::waits(settings),
            domain: make::domain(settings),
        },
        public_host: settings.server.public_host.clone(),
        body_wait: make::body_wait(settings),
        features: settings.features.clone(),
        metrics_for: make::readers(settings),
        access_log: make::access_log(settings),
        ..api.clone()
    }
}

/// A key of the state directory stands in the way.
fn unusable(error: &dyn std::fmt::Display) -> SettingsError {
    let fault = Finding::error(None, Origin::Default, error.to_string());
    SettingsError::Faulty(vec![fault])
}
