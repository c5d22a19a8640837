//! Extended attributes of a layer: what overlay needs stays, what only meant the build goes.

use std::ffi::{CStr, CString};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{lgetxattr, llistxattr, lremovexattr};
use rustix::io::Errno;

use crate::image::error::ImageError;

/// Linux keeps neither longer lists nor longer values.
const BYTES_MAX: usize = 64 * 1024;

/// Name and value.
type Attribute = (Vec<u8>, Vec<u8>);

/// Removes attributes that must not be in a layer, and answers the others, sorted by name.
pub(super) fn clean(image: &str, inside: &Path, path: &Path) -> Result<Vec<Attribute>, ImageError> {
    let failed = |e: Errno| ImageError::disk("read the attributes of", path)(e.into());
    let mut kept = Vec::new();
    for name in names(path).map_err(failed)? {
        match fate(name.to_bytes()) {
            Fate::Keep => {
                let value = value(path, &name).map_err(failed)?;
                kept.push((name.into_bytes(), value));
            }
            Fate::Ignore => {}
            Fate::Remove => lremovexattr(path, &name).map_err(failed)?,
            Fate::Refuse => {
                return Err(ImageError::Seal {
                    image: image.to_owned(),
                    reason: format!(
                        "/{} has only its metadata here; build on an overlay mounted with \
                         metacopy=off",
                        inside.display()
                    ),
                });
            }
        }
    }
    kept.sort();
    Ok(kept)
}

enum Fate {
    Keep,
    Ignore,
    Remove,
    Refuse,
}

fn fate(name: &[u8]) -> Fate {
    let overlay = [b"trusted.overlay.".as_slice(), b"user.overlay."];
    if let Some(word) = overlay.iter().find_map(|prefix| name.strip_prefix(*prefix)) {
        return match word {
            b"opaque" | b"redirect" | b"whiteout" => Fate::Keep,
            b"metacopy" => Fate::Refuse,
            // Where a file came from, by file handle: true only for the mount that wrote it.
            _ => Fate::Remove,
        };
    }
    match name {
        // As set-id bits: without effect in a sandbox, a danger on the host.
        b"security.capability" => Fate::Remove,
        _ if name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") => Fate::Keep,
        _ => Fate::Ignore,
    }
}

fn names(path: &Path) -> Result<Vec<CString>, Errno> {
    let mut list = Vec::with_capacity(BYTES_MAX);
    match llistxattr(path, spare_capacity(&mut list)) {
        Ok(_) => {}
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    }
    let split = list.split_inclusive(|&byte| byte == 0);
    Ok(split
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
        .map(CStr::to_owned)
        .collect())
}

fn value(path: &Path, name: &CStr) -> Result<Vec<u8>, Errno> {
    let mut value = Vec::with_capacity(BYTES_MAX);
    lgetxattr(path, name, spare_capacity(&mut value))?;
    Ok(value)
}
