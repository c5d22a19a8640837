//! Pure. The request for a sandbox.

mod read;
mod rules;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hooks::Hooks;
use super::volume::Volume;
use crate::secret::Secret;

/// The least time to live, in seconds.
pub const TIMEOUT_S_MIN: i64 = 60;
/// The extension that asks for a sandbox of a pool.
pub const POOL_REF: &str = "poolRef";
/// The extension that renews a sandbox while it is used.
pub const RENEW_ON_ACCESS: &str = "access.renew.extend.seconds";
/// The extension that ends a sandbox which nobody uses for so many seconds. One of our own.
pub const IDLE_TIMEOUT: &str = "barchan.idle.timeout.seconds";
/// The extension that names the private networks that a sandbox takes part in, with commas between
/// them. One of our own, as the next.
pub const NETWORKS: &str = "barchan.networks";
/// The extension that names the sandbox in them.
pub const NETWORK_NAME: &str = "barchan.network.name";
/// Extensions under this prefix are kept and shown; all others without a meaning are dropped.
pub const KEPT_EXTENSIONS: &str = "opensandbox.extensions.";
/// An environment name that belongs to the server.
pub const RESERVED_ENV: &str = "OPENSANDBOX_LIFECYCLE";

/// What a caller asks for. Made by [`CreateSandbox::read`], it keeps the rules between fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSandbox {
    /// What it starts from; a snapshot or a template else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The snapshot it starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// The template it starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Time to live in seconds; without it the sandbox never ends by itself.
    #[serde(rename = "timeout", skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// What it may use: `cpu`, `memory` and others, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_limits: Option<BTreeMap<String, String>>,
    /// What it is promised, where a scheduler heeds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requests: Option<BTreeMap<String, String>>,
    /// Environment of the entrypoint and of commands. May hold secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Secret>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Programs to run before the start and at intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Hooks>,
    /// First program and arguments; with an image always there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Vec<String>>,
    /// Outbound rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
    /// Whether credentials are put into outbound requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_proxy: Option<CredentialProxy>,
    /// Whether the sandbox's ports want a token.
    pub secure_access: bool,
    /// What is mounted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// What is outside of the fixed fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, String>,
    /// The platform asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// An image by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The name: `host`, `data-science`, `python:3.11`, …
    pub uri: String,
    /// What a registry asks for. Never sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ImageAuth>,
}

impl Image {
    /// An image of a name.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            auth: None,
        }
    }
}

/// Credentials of an image registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageAuth {
    /// Who.
    pub username: String,
    /// And their word.
    pub password: Secret,
}

/// Outbound rules of a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicy {
    /// `allow` or `deny`, for what no rule names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_action: Option<String>,
    /// The rules, first match first.
    pub egress: Vec<NetworkRule>,
}

/// One outbound rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRule {
    /// `allow` or `deny`.
    pub action: String,
    /// A domain, a wildcard domain, an address or a range.
    pub target: String,
}

/// Whether credentials are put into outbound requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialProxy {
    /// Whether they are.
    pub enabled: bool,
}

/// An operating system and a kind of processor, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// `linux` or `windows`.
    pub os: String,
    /// `amd64` or `arm64`.
    pub arch: String,
}
