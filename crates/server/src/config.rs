//! The server's settings: one TOML file, a few environment variables, and what `init-config`
//! writes.

mod check;
mod paths;

use std::path::{Path, PathBuf};

use barchan_wire::secret::Secret;
use confique::Config;
use confique::toml::FormatOptions;
use serde::Deserialize;

pub(crate) use paths::is_root;
pub use paths::{settings_path, state_dir};

/// The examples that `init-config` can write.
pub const EXAMPLES: [&str; 1] = ["native"];

/// Settings of `barchan serve`. Every one has a default; a key that is not listed here is refused.
#[derive(Debug, Clone, Config)]
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
    /// How requests reach programs inside sandboxes.
    #[config(nested)]
    pub proxy: Proxy,
    /// What is written to standard error.
    #[config(nested)]
    pub log: Log,
}

/// Where the server listens and whom it serves.
#[derive(Debug, Clone, Config)]
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
    /// The key of the API. Left out, one is made at the first start and kept in the file `api_key`
    /// of the state directory. An empty text asks for no key, which only loopback may do.
    #[config(env = "BARCHAN_API_KEY")]
    pub api_key: Option<Secret>,
    /// The Unix socket for local programs of the same user, which need no key. Left out, it is
    /// `api.sock` in the state directory.
    pub socket: Option<PathBuf>,
    /// The `host[:port]` put into endpoints. Left out, it is what the caller wrote in `Host`.
    pub public_host: Option<String>,
    /// Host names under which a server on loopback may be called, besides `localhost` and
    /// addresses. A proxy in front of it that passes its own name on needs an entry.
    #[config(default = [])]
    pub allowed_hosts: Vec<String>,
    /// The longest time to live a create may ask for, in seconds. Left out, there is none.
    pub max_sandbox_timeout_seconds: Option<u64>,
    /// Most connections at once; more wait.
    #[config(default = 4096)]
    pub connections_max: usize,
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
#[derive(Debug, Clone, Config)]
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
#[derive(Debug, Clone, Config)]
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
    /// Spare processes kept ready, so that a create need not wait for the kernel. Each costs some
    /// 0.5 MB; 0 keeps none.
    #[config(default = 4)]
    pub spares: usize,
}

/// Local images that stand in for a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alias {
    /// A name as callers write it; `*` stands for anything.
    pub pattern: String,
    /// Images of the local store, tried in turn.
    pub images: Vec<String>,
}

/// What a sandbox may use.
#[derive(Debug, Clone, Config)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Limits {
    /// Refuse a limit that this host cannot enforce, instead of reporting it in `extensions`. Left
    /// out, this holds for a server that runs as root.
    pub strict: Option<bool>,
    /// Most sandboxes at once.
    #[config(default = 10_000)]
    pub sandboxes_max: usize,
    /// Limits of sandboxes whose caller sets none.
    #[config(nested)]
    pub default: DefaultLimits,
    /// The largest limits a caller may set.
    #[config(nested)]
    pub max: MaxLimits,
}

/// Limits of sandboxes whose caller sets none.
#[derive(Debug, Clone, Config)]
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
#[derive(Debug, Clone, Config)]
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

/// How requests reach programs inside sandboxes.
#[derive(Debug, Clone, Config)]
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
}

/// What is written to standard error.
#[derive(Debug, Clone, Config)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Log {
    /// error, warn, info, debug or trace.
    #[config(default = "info", env = "BARCHAN_LOG")]
    pub level: String,
    /// Write JSON instead of lines.
    #[config(default = false)]
    pub json: bool,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file that was asked for is not there.
    #[error("no settings file at {0}: `barchan init-config {0}` writes one")]
    Missing(PathBuf),
    /// The file does not hold these settings.
    #[error("the settings in {path} cannot be used: {why}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What stands in the way, with the line.
        why: String,
    },
    /// A value is no good.
    #[error("the setting `{key}` cannot be used: {why}")]
    BadValue {
        /// Which setting.
        key: &'static str,
        /// What is wrong and what is right.
        why: String,
    },
}

impl Settings {
    /// Reads the settings of a file, over them the environment's, under them the defaults. Without
    /// a path, the usual place is read if there is a file.
    ///
    /// # Errors
    /// When the named file is missing, or something in it is no setting.
    pub fn load(path: Option<&Path>) -> Result<Self, SettingsError> {
        let place = match path {
            Some(path) if !path.exists() => return Err(SettingsError::Missing(path.to_owned())),
            Some(path) => path.to_owned(),
            None => settings_path(),
        };
        let loaded = Self::builder().env().file(&place).load();
        let settings = loaded.map_err(|error| SettingsError::Unreadable {
            path: place,
            why: chain(&error),
        })?;
        check::check(&settings)?;
        Ok(settings)
    }

    /// Every setting at its default, the environment left aside.
    ///
    /// # Errors
    /// Never, unless a default is no good.
    pub fn defaults() -> Result<Self, SettingsError> {
        Self::parse("")
    }

    /// Reads settings from text, the environment left aside.
    ///
    /// # Errors
    /// When something in it is no setting.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        use confique::Layer as _;
        type Layer = <Settings as Config>::Layer;
        let unreadable = |why: String| SettingsError::Unreadable {
            path: "text".into(),
            why,
        };
        let layer: Layer = toml::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let whole = layer.with_fallback(Layer::default_values());
        let settings = Self::from_layer(whole).map_err(|error| unreadable(chain(&error)))?;
        check::check(&settings)?;
        Ok(settings)
    }

    /// The commented settings file of an example; `None` when there is no such example.
    #[must_use]
    pub fn example(name: &str) -> Option<String> {
        let native = || confique::toml::template::<Self>(FormatOptions::default());
        EXAMPLES.contains(&name).then(native)
    }
}

/// An error with its causes, which the outer one leaves out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(inner.to_string().trim_end());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_holds_every_default_and_is_read_back() {
        let example = Settings::example("native").unwrap();
        Settings::parse(&example).unwrap();
        let filled: String = example
            .lines()
            .map(|line| {
                line.strip_prefix('#')
                    .filter(|rest| !rest.starts_with(' '))
                    .unwrap_or(line)
            })
            .filter(|line| !line.trim_end().ends_with('='))
            .fold(String::new(), |text, line| text + line + "\n");
        let settings = Settings::parse(&filled).unwrap();
        assert_eq!(settings.limits.default.disk, "10Gi");
        assert!(Settings::example("docker").is_none());
    }

    #[test]
    fn bad_settings_are_named() {
        for (text, named) in [
            ("[server]\nprot = 1\n", "prot"),
            ("[serve]\n", "serve"),
            ("[limits.max]\nmemory = 5\n", "memory"),
            ("[limits.max]\nmemory = \"lots\"\n", "limits.max.memory"),
            ("[limits.default]\ncpu = \"-1\"\n", "limits.default.cpu"),
            (
                "[server]\nhost = \"0.0.0.0\"\napi_key = \"\"\n",
                "server.api_key",
            ),
            ("[server]\napi_key = \"short\"\n", "server.api_key"),
            (
                "[server]\nmax_sandbox_timeout_seconds = 5\n",
                "max_sandbox_timeout_seconds",
            ),
            ("[runtime]\nkind = \"docker\"\n", "runtime.kind"),
            ("[runtime]\nspares = 1025\n", "runtime.spares"),
            (
                "[server]\npublic_host = \"http://x\"\n",
                "server.public_host",
            ),
        ] {
            let error = Settings::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let settings = Settings::parse("[server]\napi_key = \"0123456789abcdef\"\n").unwrap();
        assert!(!format!("{settings:?}").contains("0123456789abcdef"));
        let bad = Settings::parse("[server]\napi_key = \"hunter2\"\n").unwrap_err();
        assert!(!bad.to_string().contains("hunter2"), "{bad}");
    }
}
