//! Lays out what a build is shown at [`GIVEN`].

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::base::Base;
use super::workplace::Workplace;
use super::{BuildRequest, failed, given};
use crate::image::Bind;
use crate::image::build::python;
use crate::image::build::steps::{Venv, given_name};
use crate::image::clients::{Clients, GIVEN};
use crate::image::disk;
use crate::image::error::ImageError;
use crate::image::host::{self, HostPython, PYTHON_MIN, Pip};
use crate::image::recipes::LoadedRecipe;

/// Decides which interpreter the recipe's packages get.
pub(super) async fn venv(
    request: &BuildRequest,
    base: &Base,
    kept: bool,
    clients: &mut Clients,
    place: &Workplace,
) -> Result<Venv, ImageError> {
    if request.recipe.requirements.is_none() || kept {
        return Ok(Venv::Kept);
    }
    if !base.manifest.on_host {
        return Ok(Venv::New(None));
    }
    if let Some(python) = host::python(&request.clients.root) {
        pip(request, &python, clients, place).await;
        return Ok(Venv::New(Some(python.exe.display().to_string())));
    }
    let Some(found) = python::outside(&request.clients).await else {
        let reason = format!(
            "this host has no Python of version 3.{PYTHON_MIN} or later, neither in /usr nor in \
             PATH; install one (python3), or take a base that brings its own"
        );
        return Err(failed(&request.recipe, reason));
    };
    let (prefix, exe) = (found.prefix.display().to_string(), found.exe());
    clients.binds.push(Bind {
        source: found.prefix,
        target: given("python"),
    });
    Ok(Venv::Copied { prefix, exe })
}

/// Lends a pip where the distribution split it off from Python: one of another interpreter, or the
/// distribution's own wheel. Without either the build says what is missing.
async fn pip(
    request: &BuildRequest,
    python: &HostPython,
    clients: &mut Clients,
    place: &Workplace,
) {
    if host::pip(&request.clients.root, python) != Pip::Missing {
        return;
    }
    if let Some(folder) = python::any_pip(&request.clients).await {
        clients.binds.push(Bind {
            source: folder,
            target: given("pip/pip"),
        });
    } else if let Some((name, wheel)) = python::pip_from_apt(&place.folder().join("pip")).await {
        clients.files.insert(format!("pip/{name}"), wheel);
    }
}

/// Adds the recipe's own files.
pub(super) fn contents(loaded: &LoadedRecipe, clients: &mut Clients) {
    for (number, content) in loaded.contents.iter().enumerate() {
        clients.files.insert(given_name(number), content.clone());
    }
    if let Some(requirements) = &loaded.requirements {
        clients
            .files
            .insert("requirements.txt".to_owned(), requirements.clone());
    }
}

/// Writes all files, makes the mount points of all folders, and answers the binds in their order.
/// Everybody may read the files: the build's root is nobody on the host, and the folder that holds
/// them is closed to others.
pub(super) fn write(clients: &Clients, place: &Workplace) -> Result<Vec<Bind>, ImageError> {
    let folder = place.given();
    for (name, content) in &clients.files {
        open_folders(&folder, Path::new(name).parent())?;
        let path = folder.join(name);
        fs::write(&path, content).map_err(ImageError::disk("write", &path))?;
        set_mode(&path, 0o644)?;
    }
    let mut binds = vec![Bind {
        source: folder.clone(),
        target: GIVEN.into(),
    }];
    for bind in &clients.binds {
        if let Ok(inside) = bind.target.strip_prefix(GIVEN) {
            open_folders(&folder, Some(inside))?;
        }
        binds.push(bind.clone());
    }
    if clients.files.contains_key("resolv.conf") {
        let source = folder.join("resolv.conf");
        binds.push(Bind {
            source,
            target: "/etc/resolv.conf".into(),
        });
    }
    Ok(binds)
}

/// Makes the mount point of one more folder.
pub(super) fn mount_point(place: &Workplace, bind: &Bind) -> Result<(), ImageError> {
    open_folders(&place.given(), bind.target.strip_prefix(GIVEN).ok())
}

/// Makes the folders of a path beneath another, open to everybody whatever the umask.
fn open_folders(folder: &Path, inside: Option<&Path>) -> Result<(), ImageError> {
    let mut path = folder.to_path_buf();
    for part in inside.into_iter().flatten() {
        path.push(part);
        disk::make_dir(&path)?;
        set_mode(&path, 0o755)?;
    }
    set_mode(folder, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), ImageError> {
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(ImageError::disk("change", path))
}
