//! Pure. Whether a request for a sandbox can be granted, and what it means when it can.

mod resources;

use std::collections::BTreeMap;

use barchan_runtime::{Capabilities, Limits};
use barchan_wire::lifecycle::create::{KEPT_EXTENSIONS, POOL_REF, RENEW_ON_ACCESS};
use barchan_wire::lifecycle::{CreateSandbox, Platform, code, metadata};
use barchan_wire::secret::Secret;
use serde_json::{Map, Value};

use super::errors::Refusal;
use crate::lifecycle::Draft;
use crate::lifecycle::state::Origin;

/// Longest single text a program can be given, and all of them together, in bytes (what Linux
/// passes on at a start).
const TEXT_BYTES_MAX: usize = 128 * 1024 - 1;
const TEXTS_BYTES_MAX: usize = 1024 * 1024;
/// Longest name of an image, in bytes.
const IMAGE_BYTES_MAX: usize = 1024;

/// Environment names under this prefix steer the outbound guard and never reach a sandbox.
const GUARD_PREFIX: &str = "OPENSANDBOX_EGRESS_";
/// Those of them that a caller may set.
const GUARD_NAMES: [&str; 11] = [
    "LOG_LEVEL",
    "DNS_UPSTREAM_TIMEOUT",
    "MITMPROXY_SSL_INSECURE",
    "MITMPROXY_TRANSPARENT",
    "MITMPROXY_EXTRA_PORTS",
    "DENY_WEBHOOK",
    "METRICS_EXTRA_ATTRS",
    "CREDENTIAL_VAULT_REQUIRE_TLS",
    "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
    "CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
    "POLICY_FILE",
];

/// What the operator grants.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    /// Longest time to live that may be asked for, in seconds.
    pub(crate) timeout_s_max: Option<u64>,
    /// Limits of sandboxes whose caller sets none.
    pub(crate) default: Limits,
    /// The largest limits a caller may set.
    pub(crate) max: Limits,
    /// Whether a limit that the host cannot enforce is refused.
    pub(crate) strict: bool,
    /// The processor of this host as the wire names it.
    pub(crate) arch: &'static str,
}

impl Admission {
    /// Turns a request into a sandbox to be made.
    pub(super) fn admit(
        &self,
        asked: CreateSandbox,
        host: &Capabilities,
    ) -> Result<Draft, Refusal> {
        for (key, value) in &asked.metadata {
            metadata::check(key, value).map_err(|fault| {
                let shown: String = key.chars().take(64).collect();
                let message = format!("metadata '{shown}': {fault}");
                Refusal::new(400, code::INVALID_METADATA_LABEL, message)
            })?;
        }
        self.timeout(asked.timeout_s)?;
        self.platform(asked.platform.as_ref())?;
        offered(&asked)?;
        volumes(&asked.volumes)?;
        let extensions = extensions(asked.extensions)?;
        let image = asked.image.map(|image| image.uri).unwrap_or_default();
        plain("the image's name", &image, IMAGE_BYTES_MAX)?;
        let entrypoint = asked.entrypoint.unwrap_or_default();
        check_entrypoint(&entrypoint)?;
        let env = environment(asked.env, &entrypoint)?;
        let limits = self.limits(&asked.resource_limits.unwrap_or_default(), host)?;
        let platform = asked.platform.map(|Platform { os, arch }| (os, arch));
        Ok(Draft {
            origin: Origin {
                image,
                entrypoint,
                platform,
                extensions,
            },
            metadata: asked.metadata,
            timeout_s: asked.timeout_s,
            env,
            limits,
        })
    }

    fn timeout(&self, asked: Option<u64>) -> Result<(), Refusal> {
        match (asked, self.timeout_s_max) {
            (Some(asked), Some(max)) if asked > max => Err(Refusal::parameter(format!(
                "timeout {asked} is longer than this server allows: {max} seconds at most"
            ))),
            (None, Some(max)) => Err(Refusal::parameter(format!(
                "this server wants a timeout: {max} seconds at most"
            ))),
            // Not even the calendar reaches that far.
            (Some(asked), None) if asked > 250_000_000_000 => Err(Refusal::parameter(format!(
                "timeout {asked} lies beyond all dates"
            ))),
            _ => Ok(()),
        }
    }

    fn platform(&self, asked: Option<&Platform>) -> Result<(), Refusal> {
        let Some(Platform { os, arch }) = asked else {
            return Ok(());
        };
        if os == "linux" && arch == self.arch {
            return Ok(());
        }
        let message = format!("platform must be linux/{} on this host", self.arch);
        Err(Refusal::parameter(message))
    }
}

/// Refuses what only other servers of this API do.
fn offered(asked: &CreateSandbox) -> Result<(), Refusal> {
    if asked
        .extensions
        .get(POOL_REF)
        .is_some_and(|name| !name.trim().is_empty())
    {
        let message = "this server has no pools: leave extensions.poolRef out";
        return Err(Refusal::new(400, code::UNSUPPORTED_POOL_REF, message));
    }
    if asked.template_id.is_some() {
        let message = "this server has no templates: name an image and an entrypoint";
        return Err(Refusal::new(400, code::INVALID_ENTRYPOINT, message));
    }
    if let Some(id) = &asked.snapshot_id {
        let shown: String = id.chars().take(64).collect();
        let message = format!("there is no snapshot {shown}");
        return Err(Refusal::new(404, code::SNAPSHOT_NOT_FOUND, message));
    }
    for (present, name) in [
        (asked.lifecycle.is_some(), "lifecycle hooks"),
        (
            asked.secure_access,
            "secureAccess; every port needs the endpoint's token already",
        ),
        (
            asked.network_policy.is_some(),
            "networkPolicy; its sandboxes have no network at all",
        ),
    ] {
        if present {
            return Err(Refusal::parameter(format!(
                "this server does not offer {name}"
            )));
        }
    }
    Ok(())
}

fn volumes(volumes: &[Map<String, Value>]) -> Result<(), Refusal> {
    let Some(volume) = volumes.first() else {
        return Ok(());
    };
    if volume.contains_key("host") {
        let message = "no host path may be mounted into a sandbox";
        return Err(Refusal::new(400, code::HOST_PATH_NOT_ALLOWED, message));
    }
    Err(Refusal::new(
        400,
        code::UNSUPPORTED_VOLUME,
        "this server has no volumes",
    ))
}

/// Those that are kept and shown; others without a meaning here are dropped.
fn extensions(asked: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    if let Some(text) = asked.get(RENEW_ON_ACCESS) {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let seconds: Option<u64> = digits.then(|| text.parse().ok()).flatten();
        if !seconds.is_some_and(|seconds| (300..=86_400).contains(&seconds)) {
            let message = format!("extensions.{RENEW_ON_ACCESS} must be 300 to 86400 seconds");
            return Err(Refusal::parameter(message));
        }
    }
    Ok(asked
        .into_iter()
        .filter(|(key, _)| key.starts_with(KEPT_EXTENSIONS))
        .collect())
}

fn check_entrypoint(entrypoint: &[String]) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::new(400, code::INVALID_ENTRYPOINT, message));
    if entrypoint
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        return refused("the entrypoint names no program");
    }
    if entrypoint.iter().any(|word| word.contains('\0')) {
        return refused("the entrypoint contains a NUL character");
    }
    if entrypoint.iter().any(|word| word.len() > TEXT_BYTES_MAX) {
        return refused("a word of the entrypoint has more than 131071 bytes");
    }
    Ok(())
}

fn environment(
    asked: BTreeMap<String, Secret>,
    entrypoint: &[String],
) -> Result<BTreeMap<String, Secret>, Refusal> {
    let mut total: usize = entrypoint.iter().map(|word| word.len() + 1).sum();
    let mut env = BTreeMap::new();
    for (name, value) in asked {
        let shown: String = name.chars().take(64).collect();
        if let Some(rest) = name.strip_prefix(GUARD_PREFIX) {
            if !GUARD_NAMES.contains(&rest) {
                let message = format!("env {shown}: no such setting of the outbound guard");
                return Err(Refusal::parameter(message));
            }
            continue;
        }
        if name.is_empty() || name.contains(['=', '\0']) {
            let message =
                format!("env '{shown}': a name has at least one character, no '=', no NUL");
            return Err(Refusal::parameter(message));
        }
        plain(
            &format!("env {shown}"),
            value.reveal(),
            TEXT_BYTES_MAX - name.len().min(TEXT_BYTES_MAX),
        )?;
        total += name.len() + value.reveal().len() + 2;
        env.insert(name, value);
    }
    if total > TEXTS_BYTES_MAX {
        let message = format!("entrypoint and env have {total} bytes together, 1 MiB at most");
        return Err(Refusal::parameter(message));
    }
    Ok(env)
}

fn plain(what: &str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.contains('\0') {
        return Err(Refusal::parameter(format!(
            "{what} contains a NUL character"
        )));
    }
    if text.len() > bytes_max {
        return Err(Refusal::parameter(format!(
            "{what} is longer than {bytes_max} bytes"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
