//! Settings of who may use the server, and of what is noted of it.

use confique::Config;
use serde::Serialize;

/// How much keys may ask for. `barchan key` and `barchan tenant` make keys and tenants.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Access {
    /// Requests in a second with `server.api_key`, and with each key of an admin. Left out, there
    /// is no limit.
    pub admin_rate_per_s: Option<u64>,
    /// How many of them may come at once after a silence. Left out, as many as in a second.
    pub admin_burst: Option<u64>,
    /// Requests in a second with each key of a tenant that has no rate of its own; 0 for no limit.
    #[config(default = 100)]
    pub tenant_rate_per_s: u64,
    /// How many of them may come at once after a silence.
    #[config(default = 500)]
    pub tenant_burst: u64,
}

/// The audit log: who changed what, and who was refused. `barchan audit` reads it.
#[derive(Debug, Clone, Config, Serialize)]
#[config(layer_attr(serde(deny_unknown_fields)))]
pub struct Audit {
    /// Whether it is written, in the folder `audit` of the state directory.
    #[config(default = true)]
    pub enabled: bool,
    /// Whether it is noted, too, that something in a sandbox was changed through the proxy: which
    /// port and by whom, never what.
    #[config(default = false)]
    pub proxied: bool,
    /// The largest size of a file, as `16Mi`; then the next one begins.
    #[config(default = "16Mi")]
    pub file_size_max: String,
    /// Most files of changes, and as many of refusals; the oldest goes for the next one.
    #[config(default = 8)]
    pub files_max: u64,
}
