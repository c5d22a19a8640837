//! The local image store: what a sandbox's root file system is made of.
//!
//! An image is a stack of sealed layers, plus read-only binds of the host's own system folders when
//! it stands on `host`. Images come from recipes, which only an operator builds. Never: privileges,
//! mounts, requests of ours.

pub mod alias;
pub mod build;
mod clients;
mod disk;
pub mod error;
mod host;
pub mod manifest;
pub mod oci;
pub mod recipe;
pub mod recipes;
mod saved;
mod seal;
pub mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use alias::Aliases;
pub use build::{BuildJob, BuildRequest, BuildStep, Builder, Built, Progress, ProgressSink, build};
pub use clients::ClientSources;
pub use error::ImageError;
pub use manifest::Manifest;
pub use recipes::LoadedRecipe;
pub use saved::Saved;
pub use store::Store;

/// The name of the image that is the host's own system.
pub const HOST: &str = "host";

/// Where an image's own Python environment lies; its `bin` comes first in PATH.
pub const VENV: &str = "/opt/venv";

/// Everything a runtime must know to stack the root file system of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The image's name in the store.
    pub name: String,
    /// What identifies its content, as `sha256:…`.
    pub digest: String,
    /// Host folders to bind over the stacked layers, in this order: recursively, read-only, nosuid,
    /// nodev. Their mount points exist in the layers.
    pub binds: Vec<Bind>,
    /// Layer directories, the topmost first; never empty. Owners are as the sandbox's root sees
    /// them.
    pub layers: Vec<PathBuf>,
    /// The image's environment, without PATH.
    pub env: BTreeMap<String, String>,
    /// The whole PATH.
    pub path: String,
    /// What runs when a request names no entrypoint; may be empty.
    pub entrypoint: Vec<String>,
    /// What the store says of it; of a system that is being built, what it says of its base.
    pub manifest: Manifest,
}

/// A folder or file of the host shown inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path inside.
    pub target: PathBuf,
}

/// PATH of every image, behind what the image itself puts in front.
pub const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
