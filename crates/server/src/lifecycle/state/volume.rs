//! Pure. What is kept of the volumes of a sandbox.

use barchan_runtime as runtime;
use serde::{Deserialize, Serialize};

/// A volume that a sandbox was created with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its name within the sandbox.
    pub name: String,
    /// Where its files are.
    pub source: Source,
    /// The folder of it that is mounted; empty for the whole.
    pub sub_path: String,
    /// Where it appears in the sandbox.
    pub mount_path: String,
    /// Whether nothing in it can be changed.
    pub read_only: bool,
}

/// Where the files of a volume are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// At a path of the host.
    HostPath(String),
    /// In a named volume.
    Named {
        /// Its name.
        name: String,
        /// The size of a new one, in bytes; absent when it has to be there.
        new_bytes: Option<u64>,
        /// Whether the caller asked for that size.
        is_size_asked: bool,
        /// Whether it goes with the sandbox if it was made for it.
        goes_with_sandbox: bool,
    },
}

impl Volume {
    /// The volume as the runtime is told of it.
    #[must_use]
    pub fn plan(&self) -> runtime::Volume {
        let source = match &self.source {
            Source::HostPath(path) => runtime::VolumeSource::HostPath(path.clone()),
            Source::Named {
                name,
                new_bytes,
                is_size_asked,
                goes_with_sandbox,
            } => runtime::VolumeSource::Named {
                name: name.clone(),
                new: new_bytes.map(|bytes| runtime::NewVolume {
                    bytes,
                    is_asked: *is_size_asked,
                    goes_with_sandbox: *goes_with_sandbox,
                }),
            },
        };
        runtime::Volume {
            name: self.name.clone(),
            source,
            sub_path: self.sub_path.clone(),
            target: self.mount_path.clone(),
            read_only: self.read_only,
        }
    }
}
