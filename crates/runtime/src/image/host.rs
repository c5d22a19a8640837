//! The image `host`: this machine's own system folders, read-only, on a skeleton of ours.
//!
//! It needs no download. Programs find what they need under `/usr`; of `/etc` they get the few
//! files listed in [`skeleton`], so one that keeps its settings elsewhere in `/etc` needs an image
//! of its own.

mod fingerprint;
mod python;
mod skeleton;
mod tree;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::disk;
use super::error::ImageError;
use super::manifest::{self, Manifest, sha256};
use super::seal::{self, Secrets};
use super::store::{self, Store};
use super::{Bind, HOST, PATH_DEFAULT, ResolvedImage, VENV};

use fingerprint::Glance;
pub(super) use python::{HostPython, PYTHON_MIN, Pip, pip};

/// The interpreter that recipes on `host` use, if the system has one.
pub(super) fn python(root: &Path) -> Option<HostPython> {
    python::find(root, PYTHON_MIN)
}

/// The source of the image: the root of a system, and what was last made of it.
#[derive(Debug)]
pub(super) struct Host {
    root: PathBuf,
    known: Mutex<Option<Arc<Current>>>,
}

/// The image as it fits the host now.
#[derive(Debug)]
pub(super) struct Current {
    glance: Glance,
    pub manifest: Manifest,
    pub layer: String,
    pub binds: Vec<Bind>,
}

/// Remembered on disk, so that a start need not make the skeleton again.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    fingerprint: String,
    manifest: Manifest,
}

impl Host {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            known: Mutex::new(None),
        }
    }

    /// Answers at once while the host is unchanged, else makes the skeleton anew. Not to be called
    /// with the store's lock held.
    pub(super) fn current(&self, store: &Store) -> Result<Arc<Current>, ImageError> {
        let glance = Glance::at(&self.root);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = known.as_ref()
            && current.glance == glance
            && store.layer(&current.layer).is_dir()
        {
            return Ok(Arc::clone(current));
        }
        let fingerprint = glance.print();
        let manifest = match self.remembered(store, &fingerprint) {
            Some(manifest) => manifest,
            None => self.make(store, &fingerprint)?,
        };
        let layer = manifest.layers.first().cloned().unwrap_or_default();
        let (_, binds) = tree::system_folders(&self.root)?;
        let current = Arc::new(Current {
            glance,
            manifest,
            layer,
            binds,
        });
        *known = Some(Arc::clone(&current));
        Ok(current)
    }

    fn remembered(&self, store: &Store, fingerprint: &str) -> Option<Manifest> {
        let text = fs::read(record_path(store)).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        let layer = record.manifest.layers.first()?;
        let fits = record.fingerprint == fingerprint && store.layer(layer).is_dir();
        fits.then_some(record.manifest)
    }

    fn make(&self, store: &Store, fingerprint: &str) -> Result<Manifest, ImageError> {
        let _lock = store.lock()?;
        let fresh = store.root().join("tmp").join(HOST);
        disk::remove_tree(&fresh)?;
        skeleton::write(&self.root, &fresh)?;
        let layer = seal::seal(store, HOST, &fresh, &Secrets::default())?;
        let parts = [
            &fingerprint::packages(&self.root)?,
            &layer.id,
            skeleton::VERSION,
        ];
        let digest = sha256(parts.join("\n").as_bytes());
        let folder = store.layer(&layer.id);
        let made = fs::metadata(&folder).map_err(ImageError::disk("look at", &folder))?;
        let manifest = Manifest {
            name: HOST.to_owned(),
            recipe_digest: digest.clone(),
            digest,
            base: None,
            on_host: true,
            layers: vec![layer.id],
            env: manifest::text_env(),
            path: vec![format!("{VENV}/bin")],
            entrypoint: Vec::new(),
            created_unix_s: u64::try_from(made.mtime()).unwrap_or(0),
            pinned: false,
            bytes: layer.bytes,
        };
        let record = Record {
            fingerprint: fingerprint.to_owned(),
            manifest,
        };
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        disk::write_atomic(&record_path(store), &text)?;
        Ok(record.manifest)
    }
}

impl Current {
    pub(super) fn resolve(&self, store: &Store) -> ResolvedImage {
        ResolvedImage {
            name: HOST.to_owned(),
            digest: self.manifest.digest.clone(),
            binds: self.binds.clone(),
            layers: vec![store.layer(&self.layer)],
            env: self.manifest.env.clone(),
            path: store::path_of(&self.manifest.path, PATH_DEFAULT),
            entrypoint: Vec::new(),
            manifest: self.manifest.clone(),
        }
    }
}

fn record_path(store: &Store) -> PathBuf {
    store.root().join("host.json")
}
