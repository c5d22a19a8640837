//! Pure. Whether settings make sense together.

use std::path::{Component, Path};

use barchan_daemon::telemetry;
use barchan_wire::lifecycle::resources;

use super::{SecretSetting, Settings};
use crate::api::{AccessLog, Domain, OSEP_SHAPE, OsepKey, Readers};
use crate::egress::{RESOLVERS_MAX, Range, certificates, resolver};
use crate::observe::{BadEndpoint, Endpoint};

/// Shortest key that is no invitation to guess, in bytes.
const KEY_BYTES_MIN: usize = 16;

/// Longest path of a Unix socket that Linux takes, in bytes.
const SOCKET_BYTES_MAX: usize = 107;

/// Most targets of a list, and the longest of them, in bytes.
const TARGETS_MAX: usize = 4096;
const TARGET_BYTES_MAX: usize = 300;

/// A setting, and why its value cannot be used.
pub(super) type Fault = (&'static str, &'static str);

/// Everything that is wrong, not only the first.
pub(super) fn faults(settings: &Settings) -> Vec<Fault> {
    let server = &settings.server;
    let mut found = Vec::new();
    if let Some(key) = &server.api_key {
        found.extend(key_fault(settings, key.secret().reveal()));
    }
    let has_plain_host = server.public_host.as_deref().is_none_or(|host| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        !host.is_empty() && host.bytes().all(plain)
    });
    let socket = server.socket.as_deref();
    for (is_good, key, why) in [
        (
            has_plain_host,
            "server.public_host",
            "write host or host:port, without scheme and path",
        ),
        (
            socket.is_none_or(|path| path.as_os_str().len() <= SOCKET_BYTES_MAX),
            "server.socket",
            "the path of a Unix socket has 107 bytes at most",
        ),
        (
            settings.runtime.kind == "native",
            "runtime.kind",
            "the only runtime is `native`",
        ),
        (
            telemetry::is_level(&settings.log.level),
            "log.level",
            "write error, warn, info, debug or trace, or a filter such as \
             `info,barchan_server=debug`",
        ),
    ] {
        found.extend((!is_good).then_some((key, why)));
    }
    found.extend(ports(settings));
    found.extend(observed(settings));
    found.extend(amounts(settings));
    found.extend(storage(settings));
    found.extend(egress(settings));
    found
}

/// What concerns figures, traces and logs.
fn observed(settings: &Settings) -> impl Iterator<Item = Fault> {
    let observe = &settings.observe;
    let readers = "write `key`, `open` or `off`";
    let log = "write `info`, `debug` or `off`";
    let ratio = "write a share from 0 to 1";
    let name = "write a name of 1 to 128 characters";
    let has_readers = Readers::parse(&observe.metrics).is_some();
    let has_log = AccessLog::parse(&settings.log.access).is_some();
    let has_name = (1..=128).contains(&observe.service_name.len());
    let headers = match endpoint(settings) {
        Err(bad @ BadEndpoint::Header) => Some(("observe.otlp_headers", bad.advice())),
        Err(bad @ BadEndpoint::CaFile) => Some(("observe.otlp_ca_file", bad.advice())),
        // A server starts all the same: the address may be in an environment for other programs.
        Ok(_) | Err(BadEndpoint::NobodyKnown | BadEndpoint::Address) => None,
    };
    [
        (!has_readers).then_some(("observe.metrics", readers)),
        (!has_log).then_some(("log.access", log)),
        (!(0.0..=1.0).contains(&observe.trace_ratio)).then_some(("observe.trace_ratio", ratio)),
        (!has_name).then_some(("observe.service_name", name)),
        headers,
    ]
    .into_iter()
    .flatten()
}

/// What concerns ports of sandboxes.
fn ports(settings: &Settings) -> impl Iterator<Item = Fault> {
    let domain = settings.server.domain.as_deref();
    let has_domain = domain.is_none_or(|domain| Domain::parse(domain).is_some());
    let why = "write domain or domain:port, without scheme, path and wildcard";
    let mut keys = settings.proxy.osep_keys.iter();
    let has_keys = keys.all(|key| OsepKey::parse(key.secret().reveal()).is_some());
    [
        (!has_domain).then_some(("server.domain", why)),
        (!has_keys).then_some(("proxy.osep_keys", OSEP_SHAPE)),
    ]
    .into_iter()
    .flatten()
}

/// Where a collector is, if there is one.
pub(crate) fn endpoint(settings: &Settings) -> Result<Option<Endpoint>, BadEndpoint> {
    let observe = &settings.observe;
    let headers = || observe.otlp_headers.iter().map(SecretSetting::secret);
    let address = observe.otlp_endpoint.as_deref();
    address
        .map(|address| Endpoint::parse(address, headers(), observe.otlp_ca_file.as_deref()))
        .transpose()
}

fn key_fault(settings: &Settings, key: &str) -> Option<Fault> {
    let why = if key.is_empty() && settings.server.tcp && !settings.server.host.is_loopback() {
        "a server off loopback needs a key; leave the setting out and one is made"
    } else if !key.is_empty() && key.len() < KEY_BYTES_MIN {
        "a key has at least 16 characters"
    } else if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        "a key has only visible ASCII characters"
    } else {
        return None;
    };
    Some(("server.api_key", why))
}

/// Folders that are spelled otherwise than the kernel spells them could never be found.
fn storage(settings: &Settings) -> Option<Fault> {
    let is_plain = |path: &Path| {
        let mut parts = path.components();
        parts.next() == Some(Component::RootDir)
            && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    let mut folders = settings.storage.allowed_host_paths.iter();
    let why = "name folders by their absolute paths, without `..`";
    (!folders.all(|path| is_plain(path))).then_some(("storage.allowed_host_paths", why))
}

/// What concerns the way out of sandboxes. Whether targets are some, the program says that obeys
/// them.
fn egress(settings: &Settings) -> impl Iterator<Item = Fault> {
    let egress = &settings.egress;
    let has_resolvers = egress.resolvers.len() <= RESOLVERS_MAX
        && egress.resolvers.iter().all(|it| resolver(it).is_some());
    let is_plain = |target: &String| {
        let plain = |byte: u8| byte.is_ascii_graphic();
        (1..=TARGET_BYTES_MAX).contains(&target.len()) && target.bytes().all(plain)
    };
    let is_fine = |targets: &[String]| targets.len() <= TARGETS_MAX && targets.iter().all(is_plain);
    let why = "name at most 4096 targets: names, `*.name`, addresses or ranges";
    let ca_file = egress.extra_ca_file.as_deref();
    let has_certificates = ca_file.is_none_or(|path| certificates(path).is_some());
    let mut proxies = egress.vault_trusted_proxies.iter();
    let has_proxies = proxies.all(|it| Range::parse(it).is_some());
    [
        (!has_resolvers).then_some((
            "egress.resolvers",
            "name at most 8 resolvers by their addresses: 9.9.9.9 or 9.9.9.9:53",
        )),
        (!is_fine(&egress.deny_always)).then_some(("egress.deny_always", why)),
        (!is_fine(&egress.allow_always)).then_some(("egress.allow_always", why)),
        (!has_certificates).then_some((
            "egress.extra_ca_file",
            "the server cannot read the file, or it holds no certificate: name one with \
             certificates as PEM that everybody may read",
        )),
        (!has_proxies).then_some((
            "egress.vault_trusted_proxies",
            "name addresses or ranges by their beginnings: 192.0.2.7 or 10.0.0.0/8",
        )),
    ]
    .into_iter()
    .flatten()
}

fn amounts(settings: &Settings) -> impl Iterator<Item = Fault> {
    let (default, max) = (&settings.limits.default, &settings.limits.max);
    let cpu = [
        ("limits.default.cpu", default.cpu.as_deref()),
        ("limits.max.cpu", max.cpu.as_deref()),
    ];
    let bytes = [
        ("limits.default.memory", default.memory.as_deref()),
        ("limits.default.disk", Some(default.disk.as_str())),
        ("limits.max.memory", max.memory.as_deref()),
        ("limits.max.disk", max.disk.as_deref()),
        (
            "audit.file_size_max",
            Some(settings.audit.file_size_max.as_str()),
        ),
        (
            "storage.volume_default_size",
            Some(settings.storage.volume_default_size.as_str()),
        ),
        (
            "storage.volume_max_size",
            settings.storage.volume_max_size.as_deref(),
        ),
        (
            "storage.snapshot_max_size",
            Some(settings.storage.snapshot_max_size.as_str()),
        ),
    ];
    let is_cpu = |text: &str| resources::cpu_millis(text).is_some();
    let is_size = |text: &str| resources::bytes(text).is_some();
    let cpu = cpu.into_iter().filter_map(move |(key, text)| {
        let why = "write cores or thousandths of a core: 1.5 or 500m";
        (!text.is_none_or(is_cpu)).then_some((key, why))
    });
    let bytes = bytes.into_iter().filter_map(move |(key, text)| {
        let why = "write bytes with a unit: 512Mi or 1G";
        (!text.is_none_or(is_size)).then_some((key, why))
    });
    cpu.chain(bytes)
}
