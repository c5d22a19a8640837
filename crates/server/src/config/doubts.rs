//! Pure. What is legal in settings and may do other than was meant.

use barchan_wire::lifecycle::resources;

use super::{Settings, check};
use crate::observe::BadEndpoint;

/// A setting, and what is doubtful about its value.
type Doubt = (&'static str, String);

pub(super) fn of(settings: &Settings) -> Vec<Doubt> {
    let mut found = Vec::new();
    let mut doubt = |is_doubtful: bool, key: &'static str, why: &str| {
        if is_doubtful {
            found.push((key, why.to_owned()));
        }
    };
    let server = &settings.server;
    let is_open = server.tcp && !server.host.is_loopback();
    let asks_no_key = |key: &super::SecretSetting| key.secret().reveal().is_empty();
    doubt(
        server.api_key.as_ref().is_some_and(asks_no_key) && !is_open,
        "server.api_key",
        "no key is asked for: every program on this host may use the server",
    );
    doubt(
        is_open,
        "server.host",
        "the server speaks plain HTTP: off loopback anybody on the way can read keys and tokens; \
         put a proxy with TLS in front, or listen on loopback",
    );
    doubt(
        is_open && server.public_host.is_none(),
        "server.public_host",
        "without it endpoints name whatever host the caller wrote; set the name that callers reach",
    );
    doubt(
        is_open && server.max_sandbox_timeout_seconds.is_none(),
        "server.max_sandbox_timeout_seconds",
        "callers off this host may make sandboxes that never end",
    );
    doubt(
        is_open && !server.allowed_hosts.is_empty(),
        "server.allowed_hosts",
        "it has no effect off loopback, where every request needs the key",
    );
    doubt(
        !server.tcp && server.public_host.is_some(),
        "server.public_host",
        "the server listens on its Unix socket alone: nobody reaches this name",
    );
    let is_relative = |path: Option<&std::path::Path>| path.is_some_and(|path| path.is_relative());
    doubt(
        is_relative(server.socket.as_deref()),
        "server.socket",
        "the path depends on where the server is started; write it from the root on",
    );
    doubt(
        is_relative(settings.store.state_dir.as_deref()),
        "store.state_dir",
        "the path depends on where the server is started; write it from the root on",
    );
    if let Err(bad @ (BadEndpoint::NobodyKnown | BadEndpoint::Address)) = check::endpoint(settings)
    {
        doubt(true, "observe.otlp_endpoint", bad.advice());
    }
    doubt(
        settings.observe.metrics == "open" && is_open,
        "observe.metrics",
        "everybody who reaches this server can read its figures",
    );
    found.extend(zeroes(settings));
    found.extend(beyond(settings));
    found
}

/// Spans that cannot be nothing.
fn zeroes(settings: &Settings) -> impl Iterator<Item = Doubt> + use<> {
    let (server, runtime, proxy) = (&settings.server, &settings.runtime, &settings.proxy);
    [
        ("server.connections_max", server.connections_max == 0),
        ("server.head_wait_s", server.head_wait_s == 0),
        ("server.body_wait_s", server.body_wait_s == 0),
        ("runtime.verb_wait_s", runtime.verb_wait_s == 0),
        (
            "runtime.reconcile_interval_s",
            runtime.reconcile_interval_s == 0,
        ),
        ("proxy.answer_wait_s", proxy.answer_wait_s == 0),
        ("proxy.idle_s", proxy.idle_s == 0),
    ]
    .into_iter()
    .filter(|(_, is_zero)| *is_zero)
    .map(|(key, _)| (key, "0 counts as 1".to_owned()))
}

/// Defaults that no caller could ask for.
fn beyond(settings: &Settings) -> impl Iterator<Item = Doubt> + use<> {
    let (default, max) = (&settings.limits.default, &settings.limits.max);
    let cpu = |text: &Option<String>| text.as_deref().and_then(resources::cpu_millis);
    let bytes = |text: &Option<String>| text.as_deref().and_then(resources::bytes);
    let disk = resources::bytes(&default.disk);
    [
        ("limits.default.cpu", cpu(&default.cpu), cpu(&max.cpu)),
        (
            "limits.default.memory",
            bytes(&default.memory),
            bytes(&max.memory),
        ),
        ("limits.default.pids", Some(default.pids), max.pids),
        ("limits.default.disk", disk, bytes(&max.disk)),
    ]
    .into_iter()
    .filter(|(_, default, max)| max.is_some() && default > max)
    .map(|(key, ..)| {
        let maximum = key.replace("default", "max");
        let why = "sandboxes whose caller sets no limit are refused: it is more than";
        (key, format!("{why} `{maximum}`"))
    })
}
