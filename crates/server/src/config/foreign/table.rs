//! Pure. Every setting of OpenSandbox's server 1.1.1, and what becomes of it.

use toml::Value;

use super::Ours;

/// What becomes of a setting of theirs.
pub(super) enum Rule {
    /// The same value under our key.
    Same(&'static str),
    /// Likewise, with a difference.
    Noted(&'static str, &'static str),
    /// Ours, made of their value and of their port; or why it cannot be.
    Made(fn(&Value, u16) -> Result<Vec<Ours>, &'static str>),
    /// Not needed, for this reason.
    Ignored(&'static str),
    /// Not needed as long as its value is harmless.
    Only {
        harmless: fn(&Value) -> bool,
        ignored: &'static str,
        refused: &'static str,
    },
}

use Rule::{Ignored, Made, Noted, Only, Same};

const LOG_FILE: &str = "logs go to standard error, and who starts the server keeps them";
const NO_PORTS: &str = "no sandbox takes a port of the host: endpoints lead through the server";
const NO_SIDECAR: &str =
    "one program of the host guards all sandboxes, without an image; see the settings of [egress]";
const NO_CLUSTER: &str = "there is no Kubernetes here";
const ONE_STORE: &str = "records are kept in the state directory";
const NO_GATEWAY: &str =
    "there is no gateway: every port is reached through the server, with a token";
const NO_REDIS: &str = "uses are seen by the server itself";
const TUNING: &str = "it tunes a Python server";

/// Keys, or with `*` what keys begin with; the first that fits holds.
pub(super) static RULES: &[(&str, Rule)] = &[
    ("server.host", Made(host)),
    ("server.port", Same("server.port")),
    ("server.api_key", Made(api_key)),
    ("server.eip", Made(public_host)),
    (
        "server.max_sandbox_timeout_seconds",
        Same("server.max_sandbox_timeout_seconds"),
    ),
    (
        "server.timeout_keep_alive",
        Noted(
            "server.head_wait_s",
            "it also limits how long a request's head may take",
        ),
    ),
    (
        "server.timeout_graceful_shutdown",
        Same("server.shutdown_grace_s"),
    ),
    ("server.limit_concurrency", Made(connections)),
    ("server.backlog", Ignored(TUNING)),
    ("server.thread_pool_size", Ignored(TUNING)),
    ("server.loop", Ignored(TUNING)),
    ("server.http", Ignored(TUNING)),
    (
        "proxy.resolve_internal",
        Ignored("endpoints always lead through the server"),
    ),
    ("log.level", Made(level)),
    ("log.*", Ignored(LOG_FILE)),
    ("runtime.type", Made(runtime)),
    (
        "runtime.execd_image",
        Ignored("the daemon comes with the program"),
    ),
    (
        "runtime.execd_run_as_init",
        Ignored("the daemon is always the first process"),
    ),
    (
        "docker.api_timeout",
        Noted("runtime.verb_wait_s", "it limits each step of a sandbox"),
    ),
    ("docker.pids_limit", Made(pids)),
    (
        "docker.network_mode",
        Ignored("each sandbox has a network namespace of its own"),
    ),
    ("docker.host_ip", Ignored(NO_PORTS)),
    ("docker.port_range_min", Ignored(NO_PORTS)),
    ("docker.port_range_max", Ignored(NO_PORTS)),
    ("docker.publish_host", Ignored(NO_PORTS)),
    (
        "docker.drop_capabilities",
        Ignored("sandboxes have few capabilities, and none on the host"),
    ),
    (
        "docker.no_new_privileges",
        Ignored("no program in a sandbox gains privileges"),
    ),
    (
        "docker.apparmor_profile",
        Only {
            harmless: is_empty,
            ignored: "none is asked for",
            refused: "profiles of your own cannot be loaded: a sandbox has namespaces and a \
                      filter",
        },
    ),
    (
        "docker.seccomp_profile",
        Only {
            harmless: is_empty,
            ignored: "none is asked for",
            refused: "filters of your own cannot be loaded; every sandbox has the built-in one",
        },
    ),
    (
        "docker.sandbox_env",
        Only {
            harmless: is_empty,
            ignored: "it is empty",
            refused: "no environment is put into every sandbox: callers send it as `env`",
        },
    ),
    (
        "docker.sandbox_binds",
        Only {
            harmless: is_empty,
            ignored: "it is empty",
            refused: "no path of the host is put into every sandbox",
        },
    ),
    (
        "storage.allowed_host_paths",
        Noted(
            "storage.allowed_host_paths",
            "name folders by their real paths, without symbolic links",
        ),
    ),
    (
        "storage.volume_default_size",
        Same("storage.volume_default_size"),
    ),
    ("storage.*", Ignored("object stores are not mounted")),
    (
        "store.type",
        Only {
            harmless: |value| value.as_str() == Some("sqlite"),
            ignored: ONE_STORE,
            refused: "records are kept in SQLite alone, in the state directory",
        },
    ),
    (
        "store.path",
        Ignored("records of theirs are not taken over; ours are in the state directory"),
    ),
    ("store.postgresql.*", Ignored(ONE_STORE)),
    ("egress.requests", Ignored(NO_SIDECAR)),
    ("egress.limits", Ignored(NO_SIDECAR)),
    ("egress.*", Ignored(NO_SIDECAR)),
    (
        "ingress.mode",
        Only {
            harmless: |value| value.as_str() == Some("direct"),
            ignored: NO_GATEWAY,
            refused: NO_GATEWAY,
        },
    ),
    ("ingress.secure_access.keys", Made(osep_keys)),
    ("ingress.*", Ignored(NO_GATEWAY)),
    (
        "secure_runtime.type",
        Only {
            harmless: is_empty,
            ignored: "none is asked for",
            refused: "there is no gVisor, Kata or Firecracker here: sandboxes share the host's \
                      kernel",
        },
    ),
    ("secure_runtime.*", Ignored("there is one runtime")),
    (
        "renew_intent.enabled",
        Ignored("callers ask for it with the extension `access.renew.extend.seconds`"),
    ),
    (
        "renew_intent.min_interval_seconds",
        Ignored("a record is written anew when its end moves by a minute"),
    ),
    ("renew_intent.*", Ignored(NO_REDIS)),
    (
        "otel.enabled",
        Only {
            harmless: |value| value.as_bool() == Some(false),
            ignored: "nothing is sent unless `observe.otlp_endpoint` is set",
            refused: "name the collector's HTTP port with `observe.otlp_endpoint`",
        },
    ),
    ("otel.service_name", Same("observe.service_name")),
    (
        "otel.*",
        Ignored("see `observe` in docs/reference/settings.md"),
    ),
    (
        "tenants.*",
        Only {
            harmless: |_| false,
            ignored: "",
            refused: "make tenants with `barchan tenant create`, keys with `barchan key create`",
        },
    ),
    (
        "kubernetes.pool_acquisition_timeout_seconds",
        Same("pools.acquire_wait_s"),
    ),
    ("kubernetes.execd_init_resources", Ignored(NO_CLUSTER)),
    ("kubernetes.*", Ignored(NO_CLUSTER)),
    ("agent_sandbox.*", Ignored(NO_CLUSTER)),
];

/// Their variables: the setting of ours that they mean, or why they mean nothing here.
pub(super) static VARIABLES: [(&str, Result<&str, &str>); 7] = [
    ("OPENSANDBOX_SERVER_API_KEY", Ok("server.api_key")),
    (
        "OPENSANDBOX_INSECURE_SERVER",
        Err("nobody is asked at a start: off loopback there is always a key"),
    ),
    ("OPENSANDBOX_STORE_POSTGRESQL_DSN", Err(ONE_STORE)),
    (
        "OPENSANDBOX_SECURE_ACCESS_KEYS",
        Err("set BARCHAN_PROXY__OSEP_KEYS to the same text to accept addresses in their form"),
    ),
    (
        "OPENSANDBOX_SECURE_ACCESS_ACTIVE_KEY",
        Err("addresses in their form are accepted, and none is signed"),
    ),
    (
        "SANDBOX_CONFIG_PATH",
        Err("it names their file: `barchan config import` reads it, `serve` does not"),
    ),
    (
        "SANDBOX_TENANTS_CONFIG_PATH",
        Err("tenants are made with `barchan tenant create`"),
    ),
];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Table(table) => table.is_empty(),
        _ => false,
    }
}

fn host(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    let text = value.as_str().unwrap_or_default();
    let text = if text == "localhost" {
        "127.0.0.1"
    } else {
        text
    };
    match text.parse::<core::net::IpAddr>() {
        Ok(_) => Ok(vec![("server.host", text.into())]),
        Err(_) => Err("write the address to listen on, not a name"),
    }
}

fn api_key(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    match value.as_str() {
        // Theirs asks for none then. Ours is to make one, so nothing is written.
        Some("") => Ok(Vec::new()),
        Some(key) => Ok(vec![("server.api_key", key.into())]),
        None => Err("a key is a text"),
    }
}

/// Their address goes with ports of the host; ours with the server's own.
fn public_host(value: &Value, port: u16) -> Result<Vec<Ours>, &'static str> {
    let host = value.as_str().ok_or("a host is a text")?;
    let host = match host.parse::<core::net::Ipv6Addr>() {
        Ok(_) => format!("[{host}]"),
        Err(_) => host.to_owned(),
    };
    Ok(vec![(
        "server.public_host",
        format!("{host}:{port}").into(),
    )])
}

/// What signs addresses in their form is accepted, with each key as `id=key`.
fn osep_keys(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    const WRONG: &str = "each key is a table with `key_id` and `key`";
    let joined = |key: &Value| {
        let part = |name: &str| key.get(name).and_then(Value::as_str);
        Some(Value::from(format!("{}={}", part("key_id")?, part("key")?)))
    };
    let keys = value.as_array().ok_or(WRONG)?;
    let keys: Option<Vec<Value>> = keys.iter().map(joined).collect();
    Ok(vec![("proxy.osep_keys", Value::Array(keys.ok_or(WRONG)?))])
}

fn connections(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    match value.as_integer() {
        // Without a limit there; the default here is one that nobody meets.
        Some(0) => Ok(Vec::new()),
        Some(_) => Ok(vec![("server.connections_max", value.clone())]),
        None => Err("a limit is a number"),
    }
}

fn level(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    let level = value.as_str().unwrap_or_default().to_ascii_lowercase();
    let level = match level.as_str() {
        "trace" | "debug" | "info" | "error" => level.as_str(),
        "warn" | "warning" => "warn",
        "critical" | "fatal" => "error",
        _ => return Err("the levels are trace, debug, info, warn and error"),
    };
    Ok(vec![("log.level", level.into())])
}

fn runtime(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    match value.as_str() {
        Some("docker") => Ok(vec![("runtime.kind", "native".into())]),
        Some("kubernetes") => {
            Err("there is no Kubernetes here: one server makes its sandboxes itself")
        }
        _ => Err("their runtimes are `docker` and `kubernetes`"),
    }
}

fn pids(value: &Value, _: u16) -> Result<Vec<Ours>, &'static str> {
    match value.as_integer() {
        Some(count) if count > 0 => Ok(vec![
            ("limits.default.pids", value.clone()),
            ("limits.max.pids", value.clone()),
        ]),
        _ => Err("every sandbox has a limit here: write a number above 0"),
    }
}
