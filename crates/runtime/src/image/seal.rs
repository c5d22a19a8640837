//! Turns a tree that a build left into a layer: cleaned, checked, digested, durable.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::disk;
use super::error::ImageError;
use super::store::Store;

mod attributes;
mod secrets;

pub(super) use secrets::Secrets;

/// Most files, folders and links in one layer.
const ENTRIES_MAX: usize = 2_000_000;
/// Longest path beneath a layer; the kernel takes 4,096 bytes with the store's own path in front.
const PATH_BYTES_MAX: usize = 3_500;
/// What a build leaves here belongs to the build and not to the image.
const SCRATCH: [&str; 6] = ["tmp", "var/tmp", "run", "dev", "proc", "sys"];

/// A layer that lies in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    /// Its folder's name: the digest of its content, in hexadecimal.
    pub id: String,
    /// Bytes in its regular files.
    pub bytes: u64,
}

/// Cleans and checks a tree, digests it and moves it into the store. The caller holds the store's
/// lock. An equal layer that is there already is kept and the tree removed.
pub(super) fn seal(
    store: &Store,
    image: &str,
    tree: &Path,
    secrets: &Secrets,
) -> Result<Layer, ImageError> {
    for scratch in SCRATCH {
        empty(&tree.join(scratch))?;
    }
    let mut walk = Walk::new(image, tree, secrets);
    walk.run()?;
    let layer = Layer {
        id: hex::encode(walk.digest.finalize()),
        bytes: walk.bytes,
    };
    let target = store.layer(&layer.id);
    if target.is_dir() {
        disk::remove_tree(tree)?;
    } else {
        disk::sync_tree(tree).map_err(ImageError::disk("sync", tree))?;
        fs::rename(tree, &target).map_err(ImageError::disk("rename", tree))?;
        let parent = store.root().join("layers");
        disk::sync_dir(&parent).map_err(ImageError::disk("sync", &parent))?;
    }
    Ok(layer)
}

/// Removes what lies in a folder of the tree, without following a link that has its name.
fn empty(folder: &Path) -> Result<(), ImageError> {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
    let within = folder
        .parent()
        .is_some_and(|above| fs::symlink_metadata(above).is_ok_and(|found| found.is_dir()));
    if is_folder && within {
        for entry in sorted(folder)? {
            disk::remove_tree(&folder.join(entry))?;
        }
    }
    Ok(())
}

/// BOUNDARY: sandbox → host. Test: a_hostile_tree_is_cleaned_or_refused
/// The tree was written by whatever the build ran: links are never followed, nothing but regular
/// files is opened, and depth and number are capped.
struct Walk<'a> {
    image: &'a str,
    root: &'a Path,
    secrets: &'a Secrets,
    digest: Sha256,
    bytes: u64,
    entries: usize,
    own_ids: (u32, u32),
}

impl<'a> Walk<'a> {
    fn new(image: &'a str, root: &'a Path, secrets: &'a Secrets) -> Self {
        // Without privileges the sandbox's root is the calling user: its files count as root's.
        let own_ids = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        Self {
            image,
            root,
            secrets,
            digest: Sha256::new(),
            bytes: 0,
            entries: 0,
            own_ids,
        }
    }

    fn run(&mut self) -> Result<(), ImageError> {
        let mut pending = vec![PathBuf::new()];
        while let Some(inside) = pending.pop() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(self.refused(
                    &inside,
                    &format!("is one of more than {ENTRIES_MAX} entries"),
                ));
            }
            if inside.as_os_str().len() > PATH_BYTES_MAX {
                return Err(
                    self.refused(&inside, &format!("is deeper than {PATH_BYTES_MAX} bytes"))
                );
            }
            let path = self.root.join(&inside);
            let found = fs::symlink_metadata(&path).map_err(ImageError::disk("look at", &path))?;
            if !self.keep(&inside, &path, &found)? {
                continue;
            }
            if found.is_dir() {
                self.open_up(&path, &found)?;
                pending.extend(
                    sorted(&path)?
                        .into_iter()
                        .rev()
                        .map(|name| inside.join(name)),
                );
            }
        }
        Ok(())
    }

    /// Digests an entry; false when it was dropped instead.
    fn keep(&mut self, inside: &Path, path: &Path, found: &Metadata) -> Result<bool, ImageError> {
        let kind = found.file_type();
        if kind.is_socket() || kind.is_fifo() {
            fs::remove_file(path).map_err(ImageError::disk("remove", path))?;
            return Ok(false);
        }
        if kind.is_block_device() || (kind.is_char_device() && found.rdev() != 0) {
            return Err(self.refused(inside, "is a device node"));
        }
        let mode = if kind.is_file() {
            self.settle(path, found)?
        } else {
            found.mode()
        };
        let own = |id: u32, own: u32| if id == own { 0 } else { id };
        let (uid, gid) = (
            own(found.uid(), self.own_ids.0),
            own(found.gid(), self.own_ids.1),
        );
        self.put(inside.as_os_str().as_bytes());
        self.put(format!("{mode:o} {uid} {gid}").as_bytes());
        for (name, value) in attributes::clean(self.image, inside, path)? {
            self.put(&name);
            self.put(&value);
        }
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(ImageError::disk("read", path))?;
            self.put(target.as_os_str().as_bytes());
        } else if kind.is_file() {
            let content = self.content(inside, path)?;
            self.put(&content);
        }
        Ok(true)
    }

    /// Set-id bits do nothing in a sandbox, where nobody gains privileges, but would on the host;
    /// and what its owner cannot read could not be digested without privileges.
    fn settle(&self, path: &Path, found: &Metadata) -> Result<u32, ImageError> {
        let mode = (found.mode() & !0o6000) | 0o400;
        if mode != found.mode() {
            let plain = fs::Permissions::from_mode(mode);
            fs::set_permissions(path, plain).map_err(ImageError::disk("change", path))?;
        }
        Ok(mode)
    }

    /// A folder that its owner closed to itself could not be walked without privileges.
    fn open_up(&self, path: &Path, found: &Metadata) -> Result<(), ImageError> {
        if found.mode() & 0o500 != 0o500 {
            let open = fs::Permissions::from_mode(found.mode() | 0o700);
            fs::set_permissions(path, open).map_err(ImageError::disk("change", path))?;
        }
        Ok(())
    }

    fn content(&mut self, inside: &Path, path: &Path) -> Result<[u8; 32], ImageError> {
        let (mut digest, mut scan) = (Sha256::new(), self.secrets.scan());
        let mut file = open_plain(path).map_err(ImageError::disk("read", path))?;
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = file
                .read(&mut buffer)
                .map_err(ImageError::disk("read", path))?;
            if count == 0 {
                return Ok(digest.finalize().into());
            }
            let read = buffer.get(..count).unwrap_or_default();
            digest.update(read);
            self.bytes += count as u64;
            if scan.finds(read) {
                let what = "holds a credential of the host's package clients; make the recipe not \
                            write it there";
                return Err(self.refused(inside, what));
            }
        }
    }

    /// Lengths in front keep two different trees from giving the same bytes.
    fn put(&mut self, field: &[u8]) {
        self.digest.update((field.len() as u64).to_le_bytes());
        self.digest.update(field);
    }

    fn refused(&self, inside: &Path, what: &str) -> ImageError {
        let shown: String = inside.display().to_string().chars().take(200).collect();
        ImageError::Seal {
            image: self.image.to_owned(),
            reason: format!("/{shown} {what}"),
        }
    }
}

/// Opens a regular file and nothing else, whatever its name has become.
fn open_plain(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

fn sorted(folder: &Path) -> Result<Vec<OsString>, ImageError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|e| e.file_name()))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut names = listed.map_err(ImageError::disk("list", folder))?;
    names.sort();
    Ok(names)
}
