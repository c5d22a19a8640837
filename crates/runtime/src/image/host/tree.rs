//! Copies the few files of the host that a skeleton holds, and never what they only lead to.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::image::Bind;
use crate::image::disk;
use crate::image::error::ImageError;

/// Longest file that is copied; a bundle of certificates is a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most entries of one copied folder.
const ENTRIES_MAX: usize = 20_000;
/// Deepest folder that is copied.
const DEPTH_MAX: usize = 8;

/// A link of the system's top level, by name and target.
pub(super) type Link = (String, PathBuf);

/// How the host has `/bin`, `/sbin` and `/lib*`: links to recreate, and folders to bind. `/usr` is
/// always bound.
pub(super) fn system_folders(root: &Path) -> Result<(Vec<Link>, Vec<Bind>), ImageError> {
    let bind = |name: &str| Bind {
        source: root.join(name),
        target: Path::new("/").join(name),
    };
    let (mut links, mut binds) = (Vec::new(), vec![bind("usr")]);
    let mut names = crate::image::store::entries(root)?;
    names.retain(|name| name == "bin" || name == "sbin" || name.starts_with("lib"));
    names.sort();
    for name in names {
        let path = root.join(&name);
        match fs::read_link(&path) {
            Ok(target)
                if target
                    .strip_prefix("/")
                    .unwrap_or(&target)
                    .starts_with("usr") =>
            {
                links.push((name, target));
            }
            _ if path.is_dir() => binds.push(bind(&name)),
            _ => {}
        }
    }
    Ok((links, binds))
}

/// Copies a file or folder to the same place beneath `to`, links as links. What is not there, or is
/// neither file, folder nor link, is left out.
pub(super) fn copy(root: &Path, to: &Path, inside: &str) -> Result<(), ImageError> {
    let mut pending = vec![(PathBuf::from(inside), 0)];
    let mut count = 0;
    while let Some((inside, depth)) = pending.pop() {
        let (source, target) = (root.join(&inside), to.join(&inside));
        let Ok(found) = fs::symlink_metadata(&source) else {
            continue;
        };
        count += 1;
        if count > ENTRIES_MAX || found.len() > FILE_BYTES_MAX {
            continue;
        }
        if let Some(parent) = target.parent() {
            disk::make_dir(parent)?;
        }
        if found.is_symlink() {
            let leads = fs::read_link(&source).map_err(ImageError::disk("read", &source))?;
            link(&leads, &target)?;
        } else if found.is_dir() && depth < DEPTH_MAX {
            folder(&target, 0o755)?;
            let names = crate::image::store::entries(&source)?;
            pending.extend(names.iter().map(|name| (inside.join(name), depth + 1)));
        } else if found.is_file() {
            // What not everybody may read on the host is none of a sandbox's business.
            if found.permissions().mode() & 0o004 != 0 {
                let text = fs::read(&source).map_err(ImageError::disk("read", &source))?;
                let mode = if found.permissions().mode() & 0o111 == 0 {
                    0o644
                } else {
                    0o755
                };
                file(&target, &text, mode)?;
            }
        }
    }
    Ok(())
}

/// Writes a file with a mode, whatever the umask.
pub(super) fn file(path: &Path, text: &[u8], mode: u32) -> Result<(), ImageError> {
    if let Some(parent) = path.parent() {
        disk::make_dir(parent)?;
    }
    fs::write(path, text).map_err(ImageError::disk("write", path))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(ImageError::disk("change", path))
}

/// Makes a folder with a mode, whatever the umask.
pub(super) fn folder(path: &Path, mode: u32) -> Result<(), ImageError> {
    disk::make_dir(path)?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(ImageError::disk("change", path))
}

/// Makes a link over whatever has its name.
pub(super) fn link(leads: &Path, path: &Path) -> Result<(), ImageError> {
    if let Some(parent) = path.parent() {
        disk::make_dir(parent)?;
    }
    disk::remove_tree(path)?;
    symlink(leads, path).map_err(ImageError::disk("link", path))
}

/// Removes links beneath a folder of the skeleton that lead to nothing a sandbox sees.
pub(super) fn prune(root: &Path, to: &Path, folder: &str) -> Result<(), ImageError> {
    let mut pending = vec![to.join(folder)];
    while let Some(here) = pending.pop() {
        if !here.is_dir() {
            continue;
        }
        for name in crate::image::store::entries(&here)? {
            let path = here.join(&name);
            let kind = fs::symlink_metadata(&path).map_err(ImageError::disk("look at", &path))?;
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink() && !leads_somewhere(root, to, &path) {
                disk::remove_tree(&path)?;
            }
        }
    }
    Ok(())
}

/// Follows a link as a sandbox would: through the skeleton, and through the host's system folders.
fn leads_somewhere(root: &Path, to: &Path, link: &Path) -> bool {
    let mut inside = Path::new("/").join(link.strip_prefix(to).unwrap_or(link));
    for _ in 0..20 {
        let relative = inside.strip_prefix("/").unwrap_or(&inside).to_path_buf();
        let system = relative.components().next().is_some_and(|top| {
            let top = top.as_os_str().to_string_lossy();
            top == "usr" || top == "bin" || top == "sbin" || top.starts_with("lib")
        });
        let place = if system {
            root.join(&relative)
        } else {
            to.join(&relative)
        };
        let Ok(found) = fs::symlink_metadata(&place) else {
            return false;
        };
        if !found.is_symlink() {
            return true;
        }
        let Ok(leads) = fs::read_link(&place) else {
            return false;
        };
        let above = inside.parent().unwrap_or(Path::new("/"));
        inside = normal(&above.join(leads));
    }
    false
}

fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}
