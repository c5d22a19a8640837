//! The server's settings: one TOML file, environment variables over it, and what `init-config`
//! writes.

mod access;
mod catalog;
mod check;
mod doubts;
mod egress;
mod environment;
mod finding;
mod foreign;
mod handed;
mod live;
mod load;
mod observe;
mod paths;
mod ranges;
mod reading;
mod reference;
mod secret;
mod show;

use std::path::PathBuf;

use confique::Config;
use confique::toml::FormatOptions;
use serde::{Deserialize, Serialize};

pub use access::{Access, Audit};
pub(crate) use check::endpoint;
pub use egress::Egress;
pub use finding::{Finding, Origin, SettingsError, Severity};
pub use foreign::{Import, Line, Outcome, import};
pub use handed::Handed;
pub(crate) use live::merge;
pub use load::{Loaded, Surroundings};
pub use observe::Observe;
pub(crate) use paths::is_root;
pub use paths::{foreign_path, settings_path, state_dir};
pub use reference::reference;
pub use secret::SecretSetting;
pub use show::Shown;

/// The examples that `init-config` can write.
pub const EXAMPLES: [&str; 1] = ["native"];

/// Settings of `barchan serve`. Every one has a default; a key that is not listed here is refused.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Settings {
    /// Where the server listens and whom it serves.
    #[config(nested)]
    pub server: Server,
    /// Where the server keeps what must survive it.
    #[config(nested)]
    pub store: Store,
    /// What makes the sandboxes.
    #[config(nested)]
    pub runtime: Runtime,
    /// What a sandbox may use.
    #[config(nested)]
    pub limits: Limits,
    /// Sandboxes that stand ready before anybody asks for one.
    #[config(nested)]
    pub pools: Pools,
    /// What a sandbox may mount.
    #[config(nested)]
    pub storage: Storage,
    /// How requests reach programs inside sandboxes.
    #[config(nested)]
    pub proxy: Proxy,
    /// What sandboxes may send out, and how much of it. See `docs/reference/egress.md`.
    #[config(nested)]
    pub egress: Egress,
    /// How much keys may ask for. `barchan key` and `barchan tenant` make keys and tenants.
    #[config(nested)]
    pub access: Access,
    /// The audit log: who changed what, and who was refused. `barchan audit` reads it.
    #[config(nested)]
    pub audit: Audit,
    /// What is written to standard error.
    #[config(nested)]
    pub log: Log,
    /// What operators see of the server: figures and traces.
    #[config(nested)]
    pub observe: Observe,
    /// What this server offers. What is switched off is refused with `FEATURE_DISABLED`.
    #[config(nested)]
    pub features: Features,
}

/// Where the server listens and whom it serves.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Server {
    /// The address to listen on. Off loopback a key is always asked for.
    #[config(default = "127.0.0.1")]
    pub host: std::net::IpAddr,
    /// The TCP port to listen on; 0 takes a free one.
    #[config(default = 8080)]
    pub port: u16,
    /// Whether to listen on TCP at all, or on the Unix socket alone.
    #[config(default = true)]
    pub tcp: bool,
    /// The key of the API: a text, `{ file = "/path" }` or `{ env = "NAME" }`. Left out, one is
    /// made at the first start and kept in the file `server/api_key` of the state directory. An
    /// empty text asks for no key, which only loopback may do.
    #[config(env = "BARCHAN_API_KEY")]
    pub api_key: Option<SecretSetting>,
    /// The Unix socket for local programs of the same user, which need no key. Left out, it is
    /// `server/api.sock` in the state directory.
    pub socket: Option<PathBuf>,
    /// The user that the server runs as when root starts it, by name or number; `root` keeps root.
    /// Left out, it is the user `barchan` if there is one, else a number from 60600 to 61099 that
    /// stays with the state directory. A small process stays root and carries out what the server
    /// asks of the runtime.
    pub user: Option<String>,
    /// The `host[:port]` put into endpoints. Left out, it is what the caller wrote in `Host`.
    pub public_host: Option<String>,
    /// The `domain` or `domain:port` below which each port of a sandbox is a host of its own,
    /// `{port}-{id}.{domain}`; needs a DNS wildcard, and nothing else may have a name below it.
    /// Left out, only `localhost` is such a domain. See `docs/reference/proxy.md`.
    pub domain: Option<String>,
    /// Host names under which a server on loopback may be called, besides `localhost` and
    /// addresses. A proxy in front of it that passes its own name on needs an entry.
    #[config(default = [])]
    pub allowed_hosts: Vec<String>,
    /// The longest time to live a create may ask for, in seconds. Left out, there is none.
    pub max_sandbox_timeout_seconds: Option<u64>,
    /// Most connections at once over TCP, and as many over the Unix socket; more wait.
    #[config(default = 4096)]
    pub connections_max: usize,
    /// Longest time for the head of a request to arrive, and for an open connection to wait for its
    /// next request, in seconds. Then it is closed, without an answer.
    #[config(default = 75)]
    pub head_wait_s: u64,
    /// Longest time for the body of a request to the API to arrive, in seconds.
    #[config(default = 30)]
    pub body_wait_s: u64,
    /// How long a stopping server waits for requests under way, in seconds.
    #[config(default = 5)]
    pub shutdown_grace_s: u64,
    /// Stop by itself after so many seconds without a sandbox and without a request. Left out, the
    /// server stays.
    pub idle_exit_s: Option<u64>,
}

/// Where the server keeps what must survive it.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Store {
    /// The state directory. Left out, it is `/var/lib/barchan` for root and
    /// `~/.local/state/barchan` for others.
    #[config(env = "BARCHAN_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// How long an ended sandbox's state and reason stay readable, in seconds, unless its time to
    /// live is over before.
    #[config(default = 3600)]
    pub ended_retention_s: u64,
}

/// What makes the sandboxes.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Runtime {
    /// The runtime: `native`.
    #[config(default = "native")]
    pub kind: String,
    /// Images to use for the names callers know, first match first; they replace the built-in
    /// ones. Example: `[{ pattern = "python:*", images = ["data-science", "host"] }]`.
    #[config(default = [])]
    pub aliases: Vec<Alias>,
    /// How often records and sandboxes are compared, in seconds. Ends are seen at once without it.
    #[config(default = 10)]
    pub reconcile_interval_s: u64,
    /// Longest time to wait for a sandbox to start, pause, resume or go, in seconds.
    #[config(default = 60)]
    pub verb_wait_s: u64,
    /// Longest time to take a snapshot, in seconds; the sandbox runs on meanwhile.
    #[config(default = 600)]
    pub snapshot_wait_s: u64,
    /// Spare processes kept ready, so that a create need not wait for the kernel. Each costs some
    /// 0.5 MB; 0 keeps none.
    #[config(default = 4)]
    pub spares: usize,
}

/// Local images that stand in for a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alias {
    /// A name as callers write it; `*` stands for anything.
    pub pattern: String,
    /// Images of the local store, tried in turn.
    pub images: Vec<String>,
}

/// What a sandbox may use.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Limits {
    /// Refuse a limit that this host cannot enforce, instead of reporting it in `extensions`. Left
    /// out, this holds for a server that runs as root.
    pub strict: Option<bool>,
    /// Most sandboxes at once.
    #[config(default = 10_000)]
    pub sandboxes_max: usize,
    /// Most snapshots at once.
    #[config(default = 1000)]
    pub snapshots_max: usize,
    /// Most sealed layers of a sandbox that are kept, at least one: with each further one the
    /// oldest is forgotten.
    #[config(default = 100)]
    pub layers_max: u32,
    /// Most bytes by which the kept layers of a sandbox may have grown its disk, all together: the
    /// oldest are forgotten first, the last one never. Left out, none is forgotten for that.
    pub layers_bytes_max: Option<u64>,
    /// Forget a sandbox's layers so many seconds after they were sealed, but for the last one. Left
    /// out, none is forgotten for that.
    pub layers_age_s: Option<u64>,
    /// End a sandbox that nobody uses and in which nothing is at work for so many seconds, unless
    /// its caller says otherwise with the extension `barchan.idle.timeout.seconds`. Left out, none
    /// ends for that.
    pub idle_timeout_s: Option<u64>,
    /// Limits of sandboxes whose caller sets none.
    #[config(nested)]
    pub default: DefaultLimits,
    /// The largest limits a caller may set.
    #[config(nested)]
    pub max: MaxLimits,
}

/// Limits of sandboxes whose caller sets none.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct DefaultLimits {
    /// CPU, as `500m` or `1.5`.
    pub cpu: Option<String>,
    /// Memory, as `512Mi` or `1G`.
    pub memory: Option<String>,
    /// Processes and threads.
    #[config(default = 4096)]
    pub pids: u64,
    /// The writable layer, as `10Gi`.
    #[config(default = "10Gi")]
    pub disk: String,
}

/// The largest limits a caller may set.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct MaxLimits {
    /// CPU, as `500m` or `1.5`.
    pub cpu: Option<String>,
    /// Memory, as `512Mi` or `1G`.
    pub memory: Option<String>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// The writable layer, as `10Gi`.
    pub disk: Option<String>,
}

/// Sandboxes that stand ready before anybody asks for one.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Pools {
    /// Longest time to wait for a sandbox of a pool whose sandboxes are all taken, in seconds.
    #[config(default = 5)]
    pub acquire_wait_s: u64,
}

/// What a sandbox may mount.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Storage {
    /// Folders of the host in which sandboxes may mount, as real paths: without `..` and without
    /// symbolic links. An empty list allows no path of the host at all. A sandbox's root works
    /// there as the host's root, or as the user of a server without privileges, so name only
    /// folders made for sandboxes. Example: `["/srv/sandboxes"]`.
    #[config(default = [])]
    pub allowed_host_paths: Vec<PathBuf>,
    /// The size of a named volume whose caller sets none, as `1Gi`.
    #[config(default = "1Gi")]
    pub volume_default_size: String,
    /// The largest size of a named volume that a caller may set, as `100Gi`. Left out, there is
    /// none.
    pub volume_max_size: Option<String>,
    /// Most that one snapshot may take on the disk, as `20Gi`.
    #[config(default = "20Gi")]
    pub snapshot_max_size: String,
}

/// How requests reach programs inside sandboxes.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Proxy {
    /// How long a request waits for a sandbox to take connections, in milliseconds.
    #[config(default = 10_000)]
    pub connect_wait_ms: u64,
    /// How long a program may take to begin its answer, in seconds.
    #[config(default = 180)]
    pub answer_wait_s: u64,
    /// How long an unused connection into a sandbox is kept, in seconds.
    #[config(default = 15)]
    pub idle_s: u64,
    /// Keys of signed addresses as OSEP-0011 has them, each `id=key` with the key in base64, so
    /// that addresses that another server handed out work here. Their signatures have 32 bits
    /// only, which can be found by trying: leave this empty unless you need it.
    #[config(default = [])]
    pub osep_keys: Vec<SecretSetting>,
}

/// What is written to standard error.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Log {
    /// error, warn, info, debug or trace, or a filter such as `info,barchan_server=debug`.
    #[config(default = "info", env = "BARCHAN_LOG")]
    pub level: String,
    /// Write JSON instead of lines.
    #[config(default = false)]
    pub json: bool,
    /// The level of a line for each request, with its method, route, status, time, id and sandbox:
    /// `info`, `debug` or `off`. Its target is `barchan_server::access`.
    #[config(default = "debug")]
    pub access: String,
}

/// What this server offers. What is switched off is refused with `FEATURE_DISABLED`.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Features {
    /// Everything below `/x/` that is this server's own; what daemons in sandboxes offer there is
    /// reached all the same.
    #[config(default = true)]
    pub own_api: bool,
    /// `GET /x/events`: every change of every sandbox, as a stream.
    #[config(default = true)]
    pub events: bool,
    /// `POST /x/reload`: reading the settings again on a caller's word. SIGHUP does it always.
    #[config(default = true)]
    pub reload: bool,
    /// Pausing sandboxes and resuming them.
    #[config(default = true)]
    pub pause: bool,
    /// Snapshots: taking them, showing and removing them, and sandboxes out of them.
    #[config(default = true)]
    pub snapshots: bool,
    /// Hooks: programs that callers have run before a sandbox's start and at intervals.
    #[config(default = true)]
    pub hooks: bool,
    /// Pools: making them, asking for them, and sandboxes out of them. Those that were made keep
    /// their sandboxes.
    #[config(default = true)]
    pub pools: bool,
    /// The output of sandboxes' entrypoints, at `/sandboxes/{id}/diagnostics/logs`.
    #[config(default = true)]
    pub logs: bool,
    /// What happened to a sandbox and what it is, as text, at
    /// `/sandboxes/{id}/diagnostics/events`, `inspect` and `summary`.
    #[config(default = true)]
    pub diagnostics: bool,
    /// Reaching ports of programs in sandboxes; without it, only their daemon is reached.
    #[config(default = true)]
    pub service_ports: bool,
}

impl Settings {
    /// The commented settings file of an example; `None` when there is no such example.
    #[must_use]
    pub fn example(name: &str) -> Option<String> {
        let native = || confique::toml::template::<Self>(FormatOptions::default());
        EXAMPLES.contains(&name).then(native)
    }
}

#[cfg(test)]
mod tests;
