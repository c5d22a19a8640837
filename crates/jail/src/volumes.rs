//! Named volumes: files that outlive sandboxes, kept in a folder of the state directory.
//!
//! Where disks can be mounted a volume is an ext4 file system of a fixed size in a file, with a
//! journal, because it must survive the host's fall. It is mounted nowhere but in sandboxes, and
//! its ids count from 0, so that each sandbox sees them as its own through an id-mapped mount.
//! Elsewhere it is a folder, and nothing limits its size.
//!
//! What is unfinished, or on its way out, has a name that no volume can have, so whatever dies at
//! whatever moment, the next start knows what to remove.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::faults::at;
use crate::launcher::now_ms;
use crate::{disk, tree};

/// The folder of named volumes in the state directory, which is the launcher's working directory.
pub const FOLDER: &str = "volumes";
/// Most named volumes of one state directory.
pub const VOLUMES_MAX: usize = 4096;
/// What sandboxes see of a volume's place.
pub const DATA: &str = "data";

/// The file system of a volume, where it has one of its own.
const IMAGE: &str = "image.ext4";
/// Holds the id of the sandbox with which the volume goes.
const OWNER: &str = "owner";
/// Beginning of the names of what is unfinished, and of what is to be removed.
const UNFINISHED: &str = ".new-";
const REMOVED: &str = ".gone-";
/// How long the kernel may take to let go of a volume that nobody has mounted any more.
const LET_GO_MS_MAX: i64 = 10_000;
/// How often is looked meanwhile.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};

/// What a volume is made of when there is none of the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct New {
    /// The most that it holds.
    pub bytes: u64,
    /// The sandbox with which it is deleted.
    pub owner: Option<String>,
}

/// A volume as it lies in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// The most that it holds, in bytes, where that is limited.
    pub size_bytes: Option<u64>,
    /// What it takes on the host's disk, in bytes, where that is known.
    pub used_bytes: Option<u64>,
    /// The sandbox with which it is deleted.
    pub owner: Option<String>,
}

/// A volume that sandboxes can mount.
#[derive(Debug)]
pub struct Opened {
    /// Its file system, or its folder; [`DATA`] in it is what sandboxes see.
    pub tree: OwnedFd,
    /// The file behind its file system.
    pub image: Option<OwnedFd>,
}

/// Whether there is a volume of this name.
#[must_use]
pub fn exists(name: &str) -> bool {
    place(name).is_dir()
}

fn place(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Opens a volume, and makes it first if there is none and `new` says how. Says whether it did.
///
/// # Errors
/// When there is none, or it cannot be made or mounted; the message names the step.
pub fn open(name: &str, new: Option<&New>, with_disks: bool) -> io::Result<(Opened, bool)> {
    let is_new = !exists(name);
    if is_new {
        let new = new.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is none"))?;
        make(name, new, with_disks)?;
    }
    let opened = match File::options()
        .read(true)
        .write(true)
        .open(place(name).join(IMAGE))
    {
        Ok(image) if with_disks => mount(image)?,
        Ok(_) => {
            let words = "it was made by a server that ran as root, and only such a one mounts it";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Opened {
            tree: open_folder(&place(name))?,
            image: None,
        },
        Err(error) => return Err(at("open its file")(error)),
    };
    Ok((opened, is_new))
}

fn mount(image: File) -> io::Result<Opened> {
    wait_until_free(&image).map_err(at("wait for its last mount to go"))?;
    let tree = disk::mount_lasting(&image)?;
    Ok(Opened {
        tree,
        image: Some(image.into()),
    })
}

/// Takes the lock of a volume's file. The loop device shares it with whoever attached the file, and
/// so holds it until the kernel has let the last mount go, whoever died before that: two devices on
/// one file would ruin the file system.
fn wait_until_free(image: &File) -> io::Result<()> {
    let until_ms = now_ms() + LET_GO_MS_MAX;
    loop {
        match rustix::fs::flock(image, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(_) if now_ms() < until_ms => {
                let _ = poll(&mut [], Some(&LOOK));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn make(name: &str, new: &New, with_disks: bool) -> io::Result<()> {
    if all()?.len() >= VOLUMES_MAX {
        return Err(io::Error::other(format!(
            "there are {VOLUMES_MAX} volumes, as many as may be: remove some"
        )));
    }
    let unfinished = place(&format!("{UNFINISHED}{name}"));
    // What an earlier try left, if the program died in it.
    let _ = fs::remove_dir_all(&unfinished);
    let made = furnish(&unfinished, new, with_disks)
        .and_then(|()| fs::rename(&unfinished, place(name)).map_err(at("give it its name")));
    if let Err(error) = made {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    File::open(FOLDER)?.sync_all().map_err(at("keep its name"))
}

/// Makes the folder of a volume, with all that is in it.
fn furnish(unfinished: &Path, new: &New, with_disks: bool) -> io::Result<()> {
    let folder = |path: &Path, mode| fs::DirBuilder::new().mode(mode).create(path);
    folder(unfinished, 0o700).map_err(at("make its folder"))?;
    let data = unfinished.join(DATA);
    folder(&data, 0o755).map_err(at("make its folder"))?;
    // Whatever the umask of whoever started the launcher.
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&data, mode).map_err(at("make its folder"))?;
    if with_disks {
        let image = unfinished.join(IMAGE);
        disk::make_lasting(&image, new.bytes, &data)?;
        fs::remove_dir(&data).map_err(at("make its folder"))?;
    }
    if let Some(owner) = &new.owner {
        fs::write(unfinished.join(OWNER), owner).map_err(at("note with whom it goes"))?;
    }
    File::open(unfinished)?.sync_all().map_err(at("keep it"))
}

/// All volumes, by name.
///
/// # Errors
/// When their folder cannot be read.
pub fn all() -> io::Result<Vec<Found>> {
    let is_volume = |name: &String| !name.starts_with('.') && exists(name);
    let names = names()?.into_iter().filter(is_volume);
    let mut found: Vec<Found> = names.map(|name| look(&name)).collect();
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn look(name: &str) -> Found {
    let image = fs::metadata(place(name).join(IMAGE)).ok();
    Found {
        name: name.to_owned(),
        size_bytes: image.as_ref().map(fs::Metadata::len),
        used_bytes: image.as_ref().map(|image| image.blocks() * 512),
        owner: fs::read_to_string(place(name).join(OWNER)).ok(),
    }
}

fn names() -> io::Result<Vec<String>> {
    let entries = fs::read_dir(FOLDER)?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Lets a volume stay when the sandbox goes that it was to go with.
pub fn disown(name: &str) {
    let _ = fs::remove_file(place(name).join(OWNER));
}

/// Takes a volume's name away, at once; [`sweep`] removes what it held.
///
/// # Errors
/// The kernel's; NotFound when there is none.
pub fn retire(name: &str, number: u64) -> io::Result<()> {
    let gone = format!("{REMOVED}{}-{number}", std::process::id());
    fs::rename(place(name), place(&gone))
}

/// Before anything is mounted: takes away the volumes whose sandboxes died with the last launcher.
///
/// # Errors
/// When the folder cannot be made or read.
pub fn recover() -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(FOLDER)?;
    let owned = all()?.into_iter().filter(|found| found.owner.is_some());
    for (number, found) in owned.enumerate() {
        // One that cannot go now goes at the next start; the others work meanwhile.
        let _ = retire(&found.name, number as u64 | 1 << 32);
    }
    Ok(())
}

/// Removes what retired volumes held, and what was never finished. Not while any is being made.
///
/// # Errors
/// The first that could not be removed; the next sweep tries again.
pub fn sweep() -> io::Result<()> {
    let folder = open_folder(Path::new(FOLDER))?;
    let mut failed = None;
    for name in names()? {
        if name.starts_with(UNFINISHED) || name.starts_with(REMOVED) {
            failed = tree::remove(&folder, Path::new(&name)).err().or(failed);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}
