//! The store on disk: `layers/<sha256>/`, `images/<name>.json`, and `tmp/` for what is being made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::disk::{self, Lock};
use super::error::ImageError;
use super::manifest::{self, Manifest};
use super::{Aliases, HOST, PATH_DEFAULT, ResolvedImage, host::Host};

/// The images of one state directory. Several processes may have it open; all calls block briefly
/// on the disk.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    host: Host,
}

/// What [`Store::gc`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many layers.
    pub layers: usize,
}

/// Most images a store lists.
const IMAGES_MAX: usize = 10_000;
/// Longest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Store {
    /// Opens the store in a folder, making it when it is not there, and removes what a killed build
    /// or removal left behind.
    pub fn open(root: &Path) -> Result<Self, ImageError> {
        Self::open_with_host(root, Path::new("/"))
    }

    /// As [`Store::open`], with `host` made from another tree than this host's root.
    pub fn open_with_host(root: &Path, host_root: &Path) -> Result<Self, ImageError> {
        let store = Self {
            root: root.to_path_buf(),
            host: Host::new(host_root),
        };
        for folder in ["layers", "images", "tmp"] {
            disk::make_dir(&store.root.join(folder))?;
        }
        store.sweep()?;
        Ok(store)
    }

    /// Finds an image by its name in the store, else through the aliases.
    pub fn resolve(&self, name: &str, aliases: &Aliases) -> Result<ResolvedImage, ImageError> {
        if let Some(found) = self.find(name)? {
            return Ok(found);
        }
        let targets = aliases.targets(name);
        for target in targets {
            if let Some(found) = self.find(target)? {
                return Ok(found);
            }
        }
        Err(ImageError::Unknown {
            message: unknown(name, targets),
        })
    }

    /// Every image, by name; `host` first.
    pub fn list(&self) -> Result<Vec<Manifest>, ImageError> {
        let mut all = vec![self.host.current(self)?.manifest.clone()];
        all.extend(self.stored()?);
        Ok(all)
    }

    /// Removes an image's name, and the layers that nothing needs any longer. `in_use` holds image
    /// digests and layer ids of living sandboxes.
    pub fn rm(&self, name: &str, in_use: &BTreeSet<String>) -> Result<(), ImageError> {
        if name == HOST {
            let by = "the program itself: it is made from this host's own files".to_owned();
            return Err(ImageError::InUse {
                name: name.to_owned(),
                by,
            });
        }
        {
            let _lock = self.lock()?;
            let Some(manifest) = self.manifest(name)? else {
                return Err(ImageError::Unknown {
                    message: unknown(name, &[]),
                });
            };
            if in_use.contains(&manifest.digest) {
                let by = "a sandbox".to_owned();
                return Err(ImageError::InUse {
                    name: name.to_owned(),
                    by,
                });
            }
            let path = self.manifest_path(name);
            fs::remove_file(&path).map_err(ImageError::disk("remove", &path))?;
        }
        self.gc(in_use).map(|_| ())
    }

    /// Removes the layers that no image, no snapshot and no living sandbox refers to. `in_use` as
    /// for [`Store::rm`]: a sandbox's layers must be in it, since an image may have been built anew
    /// under its name since.
    pub fn gc(&self, in_use: &BTreeSet<String>) -> Result<Collected, ImageError> {
        let host = self.host.current(self)?;
        let _lock = self.lock()?;
        let mut needed: BTreeSet<String> = in_use.clone();
        needed.insert(host.layer.clone());
        for image in self.stored()? {
            needed.extend(image.layers);
        }
        needed.extend(self.needed_by_snapshots()?);
        let mut collected = Collected::default();
        for layer in entries(&self.root.join("layers"))? {
            if !needed.contains(&layer) {
                let doomed = self.root.join("tmp").join(format!("gone-{layer}"));
                let path = self.root.join("layers").join(&layer);
                fs::rename(&path, &doomed).map_err(ImageError::disk("rename", &path))?;
                disk::remove_tree(&doomed)?;
                collected.layers += 1;
            }
        }
        Ok(collected)
    }

    /// The folder of a layer.
    #[must_use]
    pub fn layer(&self, id: &str) -> PathBuf {
        self.root.join("layers").join(id)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Taken while manifests and layers change together.
    pub(super) fn lock(&self) -> Result<Lock, ImageError> {
        Lock::wait(&self.root.join("lock"))
    }

    /// Reads one image's manifest; `None` when there is none of that name.
    pub fn manifest(&self, name: &str) -> Result<Option<Manifest>, ImageError> {
        manifest::check_name(name)?;
        read_manifest(&self.manifest_path(name))
    }

    /// The manifest of an image that is there, `host` included.
    pub(super) fn described(&self, name: &str) -> Result<Manifest, ImageError> {
        if name == HOST {
            return Ok(self.host.current(self)?.manifest.clone());
        }
        let unknown = || ImageError::Unknown {
            message: unknown(name, &[]),
        };
        self.manifest(name)?.ok_or_else(unknown)
    }

    /// Writes a manifest over whatever had its name.
    pub(super) fn put(&self, manifest: &Manifest) -> Result<(), ImageError> {
        manifest::check_name(&manifest.name)?;
        let path = self.manifest_path(&manifest.name);
        let text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
        disk::write_atomic(&path, &text)
    }

    fn find(&self, name: &str) -> Result<Option<ResolvedImage>, ImageError> {
        if name == HOST {
            return Ok(Some(self.host.current(self)?.resolve(self)));
        }
        if manifest::check_name(name).is_err() {
            return Ok(None);
        }
        self.manifest(name)?
            .map(|image| self.stack(image))
            .transpose()
    }

    /// Puts the host as it is now beneath an image that stands on it.
    pub(super) fn stack(&self, image: Manifest) -> Result<ResolvedImage, ImageError> {
        let mut layers: Vec<PathBuf> = image.layers.iter().map(|id| self.layer(id)).collect();
        let mut binds = Vec::new();
        if image.on_host {
            let host = self.host.current(self)?;
            layers.push(self.layer(&host.layer));
            binds.clone_from(&host.binds);
        }
        if let Some(missing) = layers.iter().find(|layer| !layer.is_dir()) {
            let (path, reason) = (
                missing.display().to_string(),
                "the layer is gone".to_owned(),
            );
            return Err(ImageError::Corrupt { path, reason });
        }
        Ok(ResolvedImage {
            path: path_of(&image.path, PATH_DEFAULT),
            name: image.name.clone(),
            digest: image.digest.clone(),
            binds,
            layers,
            env: image.env.clone(),
            entrypoint: image.entrypoint.clone(),
            manifest: image,
        })
    }

    fn manifest_path(&self, name: &str) -> PathBuf {
        self.root.join("images").join(format!("{name}.json"))
    }

    fn stored(&self) -> Result<Vec<Manifest>, ImageError> {
        let mut all = Vec::new();
        for name in self.names()? {
            all.extend(self.manifest(&name)?);
        }
        Ok(all)
    }

    fn names(&self) -> Result<Vec<String>, ImageError> {
        let mut names: Vec<String> = entries(&self.root.join("images"))?
            .iter()
            .filter_map(|file| file.strip_suffix(".json"))
            .filter(|name| manifest::check_name(name).is_ok() && *name != HOST)
            .map(str::to_owned)
            .take(IMAGES_MAX)
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes what nobody is at work on. A build holds the lock beside its folder.
    fn sweep(&self) -> Result<(), ImageError> {
        let _lock = self.lock()?;
        let tmp = self.root.join("tmp");
        for name in entries(&tmp)? {
            if name.ends_with(".lock") {
                continue;
            }
            let lock = tmp.join(format!("{name}.lock"));
            if let Some(_held) = Lock::attempt(&lock)? {
                disk::remove_tree(&tmp.join(&name))?;
                let _ = fs::remove_file(&lock);
            }
        }
        for name in entries(&self.root.join("images"))? {
            if name.ends_with(".new") {
                disk::remove_tree(&self.root.join("images").join(name))?;
            }
        }
        Ok(())
    }
}

/// PATH with an image's own folders in front.
pub(super) fn path_of(front: &[String], rest: &str) -> String {
    front
        .iter()
        .map(String::as_str)
        .chain([rest])
        .collect::<Vec<_>>()
        .join(":")
}

fn read_manifest(path: &Path) -> Result<Option<Manifest>, ImageError> {
    let bytes = match fs::metadata(path) {
        Ok(found) if found.len() > MANIFEST_BYTES_MAX => {
            let (path, reason) = (
                path.display().to_string(),
                "too long for a manifest".to_owned(),
            );
            return Err(ImageError::Corrupt { path, reason });
        }
        Ok(_) => fs::read(path).map_err(ImageError::disk("read", path))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(ImageError::disk("read", path)(e)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|e| ImageError::Corrupt {
        path: path.display().to_string(),
        reason: format!("is no manifest ({e})"),
    })
}

/// Names in a folder that are text; others are none of ours.
pub(super) fn entries(folder: &Path) -> Result<Vec<String>, ImageError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|e| e.file_name().into_string().ok()))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(listed
        .map_err(ImageError::disk("list", folder))?
        .into_iter()
        .flatten()
        .collect())
}

fn unknown(name: &str, targets: &[String]) -> String {
    let name = manifest::shown(name);
    match targets {
        [] => format!(
            "no image '{name}' here; build one with `barchan image build RECIPE` (`barchan image \
             list` shows those there are), or lead the name to one under `runtime.aliases` in the \
             settings"
        ),
        [first, ..] => format!(
            "image '{name}' stands for the local image '{first}', which is not built yet; run \
             `barchan image build {first}`"
        ),
    }
}
