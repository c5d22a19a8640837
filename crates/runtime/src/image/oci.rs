//! Snapshots as OCI images: a tar archive with an image layout, as other programs read and write
//! it. Never: connections, privileges; trees of files are packed and unpacked by the launcher.

mod blob;
mod config;
mod index;
mod layout;
mod select;

pub use blob::Layer;
pub use config::{Described, Foreign, ids};
pub use index::Archive;
pub use layout::{Layout, Packed};

/// Why an archive is not taken, in words for whoever sent it.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// It is no image, or not what it says.
    #[error("{0}")]
    Invalid(String),
    /// It is an image for other machines.
    #[error("{0}")]
    Platform(String),
    /// It is larger than it may be.
    #[error("{0}")]
    TooLarge(String),
    /// The disk refused.
    #[error("cannot read what was received: {0}")]
    Disk(#[from] std::io::Error),
}

/// Longest document in an archive: manifests, configurations.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most layers of an image.
const LAYERS_MAX: usize = 512;

/// A label that says that an image stands on the system of the host it came from.
const ON_HOST: &str = "barchan.on-host";

fn invalid(words: impl Into<String>) -> OciError {
    OciError::Invalid(words.into())
}

/// This machine's kind, as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
