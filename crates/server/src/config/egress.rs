//! Settings of what sandboxes may send out.

use std::path::PathBuf;

use confique::Config;
use serde::Serialize;

/// What sandboxes may send out, and how much of it.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Egress {
    /// Whether sandboxes reach anything at all. Without it they have no network, and a request with
    /// `networkPolicy` is refused.
    #[config(default = true)]
    pub enabled: bool,
    /// Resolvers that names are looked up at, as `address` or `address:port`, the first that
    /// answers first. Left empty, they are those of `/etc/resolv.conf`; one on the host's loopback
    /// works too. Example: `["9.9.9.9", "[2620:fe::fe]:53"]`.
    #[config(default = [])]
    pub resolvers: Vec<String>,
    /// Targets that no sandbox reaches, whatever its policy says: names, `*.name`, addresses and
    /// ranges. Example: `["*.internal.example", "203.0.113.0/24"]`.
    #[config(default = [])]
    pub deny_always: Vec<String>,
    /// Targets that every sandbox reaches, whatever its policy says, unless they are denied always.
    #[config(default = [])]
    pub allow_always: Vec<String>,
    /// How long a connection waits for somebody's word where a rule says `ask`, in seconds; then it
    /// is refused.
    #[config(default = 120)]
    pub ask_s: u64,
    /// Most connections of a sandbox at one time.
    #[config(default = 1024)]
    pub connections_max: u64,
    /// Most bytes in a second that a sandbox sends, and as many that it receives. Left out, there
    /// is no limit.
    pub bytes_per_second_max: Option<u64>,
    /// Most bytes that a sandbox sends and receives while it lives. Left out, there is no limit.
    pub total_bytes_max: Option<u64>,
    /// A file of certificates as PEM by which servers are believed, besides those of this host,
    /// where credentials are put into requests. Read at the start and at each reload.
    pub extra_ca_file: Option<PathBuf>,
    /// Proxies in front of this server that speak TLS to callers, as addresses or ranges: their
    /// plain connections may carry credentials. Loopback and the Unix socket always may. Example:
    /// `["192.0.2.7", "10.0.0.0/8"]`.
    #[config(default = [])]
    pub vault_trusted_proxies: Vec<String>,
}
