//! Pure. Which volumes a sandbox may mount, and where.

use std::collections::{BTreeMap, BTreeSet};

use barchan_runtime::Capabilities;
use barchan_wire::lifecycle::volume::{Backend, Claim, Volume as Asked};
use barchan_wire::lifecycle::{code, resources};
use barchan_wire::limits::PATH_BYTES_MAX;

use super::Admission;
use crate::api::errors::Refusal;
use crate::lifecycle::state::{Source, Volume};

/// Least size of a named volume, in bytes: below it a file system is all bookkeeping.
const BYTES_MIN: u64 = 16 << 20;
/// Longest place of a volume in a sandbox, in bytes: all of them go to it in one message.
const MOUNT_PATH_BYTES_MAX: usize = 1024;
/// What the sandbox's own machinery needs as it is.
const OWN_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

impl Admission {
    /// The volumes of a sandbox, what others are mounted on first.
    pub(super) fn volumes(
        &self,
        asked: Vec<Asked>,
        host: &Capabilities,
    ) -> Result<Vec<Volume>, Refusal> {
        let mut names = BTreeSet::new();
        let mut claims = BTreeMap::new();
        let mut volumes = BTreeMap::new();
        for volume in asked {
            let name = volume.name.clone();
            let refuse = |code: &str, why: &str| {
                Err(Refusal::new(400, code, format!("volume {name}: {why}")))
            };
            if !names.insert(name.clone()) {
                return refuse(code::DUPLICATE_VOLUME, "there are two of this name");
            }
            if let Backend::Pvc(claim) = &volume.backend
                && *claims
                    .entry(claim.claim_name.clone())
                    .or_insert_with(|| claim.clone())
                    != *claim
            {
                let why = "the same pvc is asked for in two different ways";
                return refuse(code::INVALID_PARAMETER, why);
            }
            let volume = self.volume(volume, host)?;
            let depth = volume.mount_path.matches('/').count();
            let place = (depth, volume.mount_path.clone());
            if volumes.insert(place, volume).is_some() {
                let why = "another volume has the same mountPath";
                return refuse(code::INVALID_MOUNT_PATH, why);
            }
        }
        Ok(volumes.into_values().collect())
    }

    fn volume(&self, asked: Asked, host: &Capabilities) -> Result<Volume, Refusal> {
        let refuse = |code: &str, why: String| {
            let message = format!("volume {}: {why}", asked.name);
            Refusal::new(400, code, message)
        };
        let mount_path = place(&asked.mount_path)
            .map_err(|why| refuse(code::INVALID_MOUNT_PATH, format!("mountPath {why}")))?;
        let sub_path = part(asked.sub_path.as_deref().unwrap_or_default())
            .map_err(|why| refuse(code::INVALID_SUB_PATH, format!("subPath {why}")))?;
        let source = match &asked.backend {
            Backend::Host(host) => {
                let path = host_path(&host.path)
                    .map_err(|why| refuse(code::INVALID_HOST_PATH, format!("host.path {why}")))?;
                if !self.has_host_paths {
                    let why = "no host path may be mounted: the server's setting \
                               `storage.allowed_host_paths` names none";
                    return Err(refuse(code::HOST_PATH_NOT_ALLOWED, why.to_owned()));
                }
                Source::HostPath(path)
            }
            Backend::Pvc(claim) => self
                .claim(claim, host)
                .map_err(|why| refuse(code::INVALID_PARAMETER, format!("pvc.storage {why}")))?,
            Backend::Ossfs(_) => {
                let why = "this server mounts no object stores: use a pvc or a host path";
                return Err(refuse(code::UNSUPPORTED_VOLUME, why.to_owned()));
            }
        };
        Ok(Volume {
            source,
            sub_path,
            mount_path,
            read_only: asked.read_only,
            name: asked.name,
        })
    }

    fn claim(&self, claim: &Claim, host: &Capabilities) -> Result<Source, String> {
        let asked = claim.storage.as_deref();
        let bytes = match asked {
            None => self.volume_default_bytes,
            Some(text) => resources::bytes(text).ok_or_else(|| {
                let shown: String = text.chars().take(64).collect();
                format!("is '{shown}'; write bytes with a unit: 512Mi or 10Gi")
            })?,
        };
        if bytes < BYTES_MIN {
            return Err("is too small: a volume has at least 16Mi".to_owned());
        }
        if let Some(max) = self.volume_bytes_max.filter(|max| bytes > *max) {
            return Err(format!("is {bytes}, over this server's maximum, {max}"));
        }
        if asked.is_some() && self.strict && !host.limit_volume {
            return Err(
                "cannot be kept to on this host, and `limits.strict` forbids to go without; \
                 `barchan doctor` says what is missing"
                    .to_owned(),
            );
        }
        Ok(Source::Named {
            name: claim.claim_name.clone(),
            new_bytes: claim.create_if_not_exists.then_some(bytes),
            is_size_asked: asked.is_some(),
            goes_with_sandbox: claim.delete_on_sandbox_termination,
        })
    }
}

/// A place in the sandbox, in its one spelling.
fn place(path: &str) -> Result<String, &'static str> {
    if path.len() > MOUNT_PATH_BYTES_MAX || path.chars().any(char::is_control) {
        return Err("is longer than 1024 bytes or has control characters");
    }
    let whole = format!("/{}", down(path)?);
    if whole == "/" {
        return Err("is the root, which the image is");
    }
    let is_in = |folder: &str| {
        let rest = whole.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match OWN_FOLDERS.into_iter().any(is_in) {
        true => Err("lies in /dev, /proc or /sys, which are the sandbox's own"),
        false => Ok(whole),
    }
}

fn part(path: &str) -> Result<String, &'static str> {
    if path.starts_with('/') {
        return Err("begins with a slash; it is relative to the volume");
    }
    down(path)
}

fn host_path(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("is one of another system; this host's begin with a slash");
    }
    if path.contains("//") {
        return Err("has a double slash");
    }
    Ok(format!("/{}", down(path)?))
}

/// The names of a path that leads down only, with single slashes between.
fn down(path: &str) -> Result<String, &'static str> {
    if path.contains('\0') {
        return Err("contains a NUL character");
    }
    if path.len() > PATH_BYTES_MAX {
        return Err("is longer than 4095 bytes");
    }
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<&str> = names.collect();
    match names.contains(&"..") {
        true => Err("contains `..`"),
        false => Ok(names.join("/")),
    }
}

#[cfg(test)]
mod tests;
