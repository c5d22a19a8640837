//! Pure. What a sandbox mounts besides its image.

mod read;

use serde::{Deserialize, Serialize};

/// Longest name of a volume within a sandbox, in bytes: a DNS label.
pub const NAME_BYTES_MAX: usize = 63;
/// Longest name of a named volume, in bytes.
pub const CLAIM_BYTES_MAX: usize = 253;

/// One thing that a sandbox mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Its name within the sandbox.
    pub name: String,
    /// Where its files are.
    #[serde(flatten)]
    pub backend: Backend,
    /// Where it appears in the sandbox; begins with a slash.
    pub mount_path: String,
    /// Whether nothing in it can be changed.
    pub read_only: bool,
    /// The folder of it that is mounted instead of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
}

/// Where the files of a volume are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Backend {
    /// In a folder, or one file, of the host.
    Host(HostPath),
    /// In a named volume, which outlives sandboxes.
    Pvc(Claim),
    /// In an object store. Nothing of it is kept, its keys least of all.
    Ossfs(Bucket),
}

/// A path of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostPath {
    /// The path; begins with a slash or a drive.
    pub path: String,
}

/// A named volume, and how it is made when there is none of the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The volume's name.
    pub claim_name: String,
    /// Whether it is made when there is none.
    pub create_if_not_exists: bool,
    /// Whether it goes with the sandbox, if it was made for it.
    pub delete_on_sandbox_termination: bool,
    /// The size of a new one, as `10Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// An object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {}

/// A named volume as the server tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedVolume {
    /// Its name.
    pub name: String,
    /// The most that it holds, in bytes; absent where this host cannot limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// What its files take on the host's disk, in bytes; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// The sandboxes that have it mounted now.
    pub sandboxes: Vec<String>,
    /// The sandbox with which it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_with: Option<String>,
}

/// All named volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVolumes {
    /// By name.
    pub volumes: Vec<NamedVolume>,
}

/// Whether a text is a name as volumes have: lower-case letters, digits and inner hyphens.
#[must_use]
pub fn is_label(name: &str, bytes_max: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    name.len() <= bytes_max
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| plain(*byte))
        && bytes.last().is_some_and(|byte| plain(*byte))
}
