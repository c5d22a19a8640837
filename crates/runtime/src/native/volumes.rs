//! From what a caller wants mounted to what the launcher can open without following a link.

use std::io;
use std::path::{Component, Path, PathBuf};

use barchan_jail::spec::{self, Source};

use crate::{ErrorKind, NewVolume, RuntimeError, Volume, VolumeFault, VolumeSource};

/// What the launcher is told of a volume. Of a path of the host it is told where that really leads;
/// should that change before it looks, it refuses.
pub(super) fn resolve(volume: Volume, allowed: &[PathBuf]) -> Result<spec::Volume, RuntimeError> {
    let source = match volume.source {
        VolumeSource::HostPath(path) => host_path(Path::new(&path), &volume.sub_path, allowed)?,
        VolumeSource::Named { name, new } => Source::Named {
            name,
            path: PathBuf::from(volume.sub_path),
            new: new.map(
                |NewVolume {
                     bytes,
                     is_asked,
                     goes_with_sandbox,
                 }| spec::NewVolume {
                    bytes,
                    is_asked,
                    goes_with_sandbox,
                },
            ),
        },
    };
    Ok(spec::Volume {
        source,
        target: PathBuf::from(volume.target),
        read_only: volume.read_only,
    })
}

fn host_path(path: &Path, sub_path: &str, allowed: &[PathBuf]) -> Result<Source, RuntimeError> {
    let shown = path.display();
    let fault = |fault, words: String| Err(RuntimeError::new(ErrorKind::Volume(fault), words));
    let whole = real(path)?;
    // With nothing joined to it, a file stays a file.
    let part = match sub_path {
        "" => whole.clone(),
        below => real(&whole.join(below))?,
    };
    if !part.starts_with(&whole) {
        let words = format!("{sub_path} leads out of {shown} by a symbolic link");
        return fault(VolumeFault::SubPath, words);
    }
    let within = |root: &&PathBuf| part.starts_with(root);
    match allowed.iter().find(within) {
        Some(root) => Ok(Source::Host {
            root: root.clone(),
            path: part.strip_prefix(root).unwrap_or(&part).to_owned(),
        }),
        None => {
            let words = format!(
                "{shown} lies in none of the folders that sandboxes may mount: \
                 `storage.allowed_host_paths` in the server's settings names them"
            );
            fault(VolumeFault::HostPathNotAllowed, words)
        }
    }
}

/// Where a path leads, of which the last parts need not exist.
fn real(path: &Path) -> Result<PathBuf, RuntimeError> {
    let mut missing = Vec::new();
    let mut known = path;
    loop {
        match known.canonicalize() {
            Ok(found) => return Ok(missing.iter().rev().fold(found, |at, name| at.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_missing(known) => {
                let (Some(name), Some(above)) = (known.file_name(), known.parent()) else {
                    return Err(unknown(path, &error));
                };
                missing.push(name.to_owned());
                known = above;
            }
            Err(error) => return Err(unknown(path, &error)),
        }
    }
}

/// Whether nothing has this name, not even a link that leads nowhere.
fn is_missing(path: &Path) -> bool {
    let by_name = matches!(path.components().next_back(), Some(Component::Normal(_)));
    by_name && path.symlink_metadata().is_err()
}

fn unknown(path: &Path, error: &io::Error) -> RuntimeError {
    let kind = ErrorKind::Volume(VolumeFault::HostPathNotFound);
    RuntimeError::new(kind, format!("look up {}: {error}", path.display()))
}

/// Says which of the operator's folders no path can lie in, because a link is on the way to them.
pub(super) fn warn_of_links(allowed: &[PathBuf]) {
    for path in allowed {
        if let Ok(found) = path.canonicalize()
            && found != *path
        {
            let (path, found) = (path.display(), found.display());
            tracing::warn!(
                "storage.allowed_host_paths: nothing lies in {path}, which is a symbolic link or \
                 has one on the way: name {found}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn where_a_path_really_leads_decides() {
        use VolumeFault::{HostPathNotAllowed as No, HostPathNotFound as Absent, SubPath};
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        for folder in ["data/a/b", "data-evil", "etc"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        for (target, link) in [
            ("data/a", "way-in"),
            ("etc", "data/way-out"),
            ("a", "data/inner"),
            ("../../etc", "data/a/out"),
            ("..", "data/a/up"),
            ("nowhere", "data/dangling"),
        ] {
            symlink(
                if target.contains("..") {
                    target.into()
                } else {
                    at.join(target)
                },
                at.join(link),
            )
            .unwrap();
        }
        fs::remove_file(at.join("data/inner")).unwrap();
        symlink("a", at.join("data/inner")).unwrap();
        let allowed = [at.join("data")];
        for (path, sub, expected) in [
            ("data", "", Ok("")),
            ("data/a", "b", Ok("a/b")),
            ("data/new/er", "x", Ok("new/er/x")),
            ("way-in", "b", Ok("a/b")),
            ("data/inner", "", Ok("a")),
            ("data/way-out", "", Err(No)),
            ("data-evil", "", Err(No)),
            ("etc", "", Err(No)),
            ("data/a", "out", Err(SubPath)),
            ("data/a", "up", Err(SubPath)),
            ("data/dangling", "", Err(Absent)),
            ("data/dangling/below", "", Err(Absent)),
        ] {
            let found = host_path(&at.join(path), sub, &allowed);
            let told = match &found {
                Ok(Source::Host { root, path }) if *root == allowed[0] => {
                    Ok(path.to_str().unwrap())
                }
                Err(RuntimeError {
                    kind: ErrorKind::Volume(fault),
                    ..
                }) => Err(*fault),
                other => panic!("{other:?}"),
            };
            assert_eq!(told, expected, "{path} {sub}");
        }
        assert!(host_path(&at.join("data"), "", &[]).is_err());
    }
}
