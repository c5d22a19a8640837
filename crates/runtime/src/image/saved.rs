//! What snapshots leave in the store: `snapshots/<id>/layer/`, which the launcher writes, and
//! `snapshots/<id>/snapshot.json` beside it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use barchan_wire::id::SnapshotId;
use serde::{Deserialize, Serialize};

use super::disk;
use super::error::ImageError;
use super::manifest::Manifest;
use super::store::{Store, entries};
use super::{HOST, ResolvedImage};

/// The folder of the store with all snapshots.
const SHELF: &str = "snapshots";
const RECORD: &str = "snapshot.json";
/// Longest record that is read: environments have up to 1 MiB.
const RECORD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a sandbox is made of, besides what it writes itself: all that a snapshot must remember.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Snapshots whose layers lie over those of the image, the topmost first.
    pub stack: Vec<SnapshotId>,
    /// The image beneath, as it was; without a layer of the host's skeleton.
    pub image: Manifest,
    /// What ran first.
    pub entrypoint: Vec<String>,
    /// Environment over the image's own. May hold secrets.
    pub env: BTreeMap<String, String>,
    /// Where commands start.
    pub cwd: String,
    /// Who commands run as that name nobody, as images say it; empty for root.
    #[serde(default)]
    pub user: String,
    /// What the topmost layer takes on the disk, in bytes.
    #[serde(default)]
    pub bytes: u64,
}

/// Environment values may be secrets, so only their names are shown.
impl fmt::Debug for Saved {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Saved")
            .field("stack", &self.stack)
            .field("image", &self.image.name)
            .field("entrypoint", &self.entrypoint)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("user", &self.user)
            .field("bytes", &self.bytes)
            .finish()
    }
}

impl Saved {
    /// What a snapshot of a fresh sandbox remembers of its image.
    #[must_use]
    pub fn of_image(image: &Manifest) -> Self {
        let mut image = image.clone();
        if image.name == HOST {
            // A sandbox gets the skeleton that fits the host as it is then.
            image.layers.clear();
        }
        Self {
            stack: Vec::new(),
            image,
            entrypoint: Vec::new(),
            env: BTreeMap::new(),
            cwd: String::new(),
            user: String::new(),
            bytes: 0,
        }
    }
}

impl Store {
    /// Writes down what a snapshot is made of, beside its layer. Until then nobody knows that it
    /// needs its image, which may have been removed meanwhile.
    pub fn save(&self, id: &SnapshotId, saved: &Saved) -> Result<(), ImageError> {
        let _lock = self.lock()?;
        let mut layers = saved.image.layers.iter().map(|it| self.layer(it));
        if let Some(gone) = layers.find(|layer| !layer.is_dir()) {
            return Err(corrupt(&gone, "its image was removed meanwhile"));
        }
        let text = serde_json::to_vec_pretty(saved).unwrap_or_default();
        disk::write_atomic(&self.snapshot(id).join(RECORD), &text)
    }

    /// What a snapshot is made of.
    pub fn saved(&self, id: &SnapshotId) -> Result<Saved, ImageError> {
        read(&self.snapshot(id).join(RECORD))
    }

    /// What a sandbox of a snapshot is made of.
    pub fn resolve_saved(&self, id: &SnapshotId) -> Result<(ResolvedImage, Saved), ImageError> {
        let saved = self.saved(id)?;
        let mut image = self.stack(saved.image.clone())?;
        let own = saved.stack.iter().map(|id| self.snapshot(id).join("layer"));
        let layers: Vec<PathBuf> = own.chain(image.layers).collect();
        if let Some(missing) = layers.iter().find(|layer| !layer.is_dir()) {
            return Err(corrupt(missing, "the layer is gone"));
        }
        image.layers = layers;
        Ok((image, saved))
    }

    /// The snapshots whose layers are finished, whether or not what they are made of is written.
    pub fn snapshots(&self) -> Result<Vec<SnapshotId>, ImageError> {
        let shelf = self.root().join(SHELF);
        // What cannot be looked at is not gone.
        let is_there = shelf.try_exists();
        if !is_there.map_err(ImageError::disk("look at", &shelf))? {
            return Ok(Vec::new());
        }
        let names = entries(&shelf)?;
        Ok(names.into_iter().filter_map(|it| it.parse().ok()).collect())
    }

    /// Layers of images that snapshots stand on.
    pub(super) fn needed_by_snapshots(&self) -> Result<Vec<String>, ImageError> {
        let saved = self
            .snapshots()?
            .into_iter()
            .map(|id| match self.saved(&id) {
                // It is being made or removed right now.
                Err(ImageError::Disk { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    Ok(Vec::new())
                }
                saved => saved.map(|saved| saved.image.layers),
            });
        let layers: Result<Vec<_>, _> = saved.collect();
        Ok(layers?.concat())
    }

    fn snapshot(&self, id: &SnapshotId) -> PathBuf {
        self.root().join(SHELF).join(id.as_str())
    }
}

fn read(path: &Path) -> Result<Saved, ImageError> {
    let found = fs::metadata(path).map_err(ImageError::disk("read", path))?;
    if found.len() > RECORD_BYTES_MAX {
        return Err(corrupt(path, "too long for a record"));
    }
    let bytes = fs::read(path).map_err(ImageError::disk("read", path))?;
    // The error would quote what may be a secret.
    serde_json::from_slice(&bytes).map_err(|_| corrupt(path, "is no record of a snapshot"))
}

fn corrupt(path: &Path, reason: &str) -> ImageError {
    ImageError::Corrupt {
        path: path.display().to_string(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(layers: &[&str]) -> Manifest {
        Manifest {
            name: "image".to_owned(),
            digest: "sha256:00".to_owned(),
            base: None,
            on_host: false,
            layers: layers.iter().map(|it| (*it).to_owned()).collect(),
            env: BTreeMap::new(),
            path: Vec::new(),
            entrypoint: Vec::new(),
            created_unix_s: 0,
            recipe_digest: String::new(),
            pinned: true,
            bytes: 0,
        }
    }

    #[test]
    fn layers_stack_and_are_needed_for_as_long_as_a_snapshot_is_there() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let ids: Vec<SnapshotId> = ["0", "1"]
            .map(|it| format!("0b0e7d5c-58a0-4d67-a3f8-00000000000{it}"))
            .map(|it| it.parse().unwrap())
            .into();
        for layer in ["a", "b"] {
            fs::create_dir(store.layer(layer)).unwrap();
        }
        for (at, id) in ids.iter().enumerate() {
            fs::create_dir_all(store.snapshot(id).join("layer")).unwrap();
            let saved = Saved {
                stack: ids.iter().take(at + 1).rev().cloned().collect(),
                env: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
                ..Saved::of_image(&image(&["a", "b"]))
            };
            store.save(id, &saved).unwrap();
            let shown = format!("{saved:?}");
            assert!(
                shown.contains("TOKEN") && !shown.contains("hunter2"),
                "{shown}"
            );
        }
        let (resolved, _) = store.resolve_saved(&ids[1]).unwrap();
        let names: Vec<_> = resolved
            .layers
            .iter()
            .map(|it| it.strip_prefix(home.path()).unwrap().to_str().unwrap())
            .collect();
        let (own, below) = (
            format!("snapshots/{}/layer", ids[1]),
            format!("snapshots/{}/layer", ids[0]),
        );
        assert_eq!(names, [own.as_str(), &below, "layers/a", "layers/b"]);
        let none = std::collections::BTreeSet::new();
        store.gc(&none).unwrap();
        assert!(store.layer("a").is_dir() && store.layer("b").is_dir());
        let removed = store.save(&ids[0], &Saved::of_image(&image(&["a", "c"])));
        assert!(
            removed
                .unwrap_err()
                .to_string()
                .contains("removed meanwhile")
        );
        for id in &ids {
            fs::remove_dir_all(store.snapshot(id)).unwrap();
        }
        assert!(store.resolve_saved(&ids[1]).is_err());
        store.gc(&none).unwrap();
        assert!(!store.layer("a").exists());
    }
}
