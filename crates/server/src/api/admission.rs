//! Pure. Whether a request for a sandbox can be granted, and what it means when it can.

mod hooks;
mod pooled;
mod resources;
mod volumes;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use barchan_runtime::{Capabilities, Limits};
use barchan_wire::id::SnapshotId;
use barchan_wire::lifecycle::create::{
    IDLE_TIMEOUT, KEPT_EXTENSIONS, NETWORK_NAME, NETWORKS, RENEW_ON_ACCESS,
};
use barchan_wire::lifecycle::{CreateSandbox, Platform, code, metadata};
use barchan_wire::limits::{
    ENTRYPOINT_BYTES_MAX, SANDBOX_EXTENSIONS_BYTES_MAX, SANDBOX_EXTENSIONS_MAX, SANDBOX_LABELS_MAX,
    SANDBOX_TEXTS_MAX,
};
use barchan_wire::secret::Secret;

use super::errors::Refusal;
use crate::egress::Range;
use crate::lifecycle::state::{Allotment, Origin, Policy};
use crate::lifecycle::{Draft, Membership};

/// Longest single text a program can be given, and all of them together, in bytes (what Linux
/// passes on at a start).
const TEXT_BYTES_MAX: usize = 128 * 1024 - 1;
const TEXTS_BYTES_MAX: usize = 1024 * 1024;
/// Longest name of an image, in bytes.
const IMAGE_BYTES_MAX: usize = 1024;

/// What runs in a sandbox of a snapshot whose caller names no entrypoint.
const RESTORED_ENTRYPOINT: [&str; 3] = ["tail", "-f", "/dev/null"];

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
    /// How long a sandbox may go unused whose caller does not say, in seconds.
    pub(crate) idle_timeout_s: Option<u64>,
    /// Limits of sandboxes whose caller sets none.
    pub(crate) default: Limits,
    /// The largest limits a caller may set.
    pub(crate) max: Limits,
    /// Whether a limit that the host cannot enforce is refused.
    pub(crate) strict: bool,
    /// Whether any path of the host may be mounted.
    pub(crate) has_host_paths: bool,
    /// The size of a named volume whose caller sets none, in bytes.
    pub(crate) volume_default_bytes: u64,
    /// The largest size that a caller may set, in bytes.
    pub(crate) volume_bytes_max: Option<u64>,
    /// Proxies whose plain connections may carry credentials.
    pub(crate) vault_proxies: Vec<Range>,
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
        let wishes = self.wishes(&asked)?;
        networks(&asked.extensions)?;
        self.platform(asked.platform.as_ref())?;
        offered(&asked)?;
        let image = asked.image.map(|image| image.uri).unwrap_or_default();
        plain("the image's name", &image, IMAGE_BYTES_MAX)?;
        let snapshot = asked.snapshot_id.as_deref().map(snapshot).transpose()?;
        let entrypoint = match asked.entrypoint {
            None if snapshot.is_some() => RESTORED_ENTRYPOINT.map(str::to_owned).into(),
            asked => asked.unwrap_or_default(),
        };
        check_entrypoint(&entrypoint)?;
        let env = environment(asked.env, &entrypoint)?;
        let (pre_start, periodic) = hooks::hooks(asked.lifecycle)?;
        let resources = asked.resource_limits.unwrap_or_default();
        let limits = self.limits(&resources, host)?;
        let gpus = resources::gpus(&resources, host)?;
        let volumes = self.volumes(asked.volumes, host)?;
        let platform = asked.platform.map(|Platform { os, arch }| (os, arch));
        Ok(Draft {
            origin: Origin {
                image,
                entrypoint,
                platform,
                extensions: wishes.extensions,
                idle_timeout_s: wishes.idle_timeout_s,
                renew_on_access_s: wishes.renew_on_access_s,
                pool: None,
                volumes,
                snapshot,
                credential_proxy: asked.credential_proxy.is_some_and(|it| it.enabled),
                ..Origin::default()
            },
            metadata: wishes.metadata,
            timeout_s: wishes.timeout_s,
            env,
            limits,
            pre_start,
            periodic,
            gpus,
            // Whoever admits it has the guard look at it.
            policy: asked.network_policy.map(Policy::from),
            from: None,
        })
    }

    /// What holds for every sandbox, however it comes about.
    fn wishes(&self, asked: &CreateSandbox) -> Result<Allotment, Refusal> {
        self.check_bounds(&asked.metadata, asked.timeout_s)?;
        let renew_on_access_s = seconds(&asked.extensions, RENEW_ON_ACCESS, 300..=86_400)?;
        let idle_timeout_s = seconds(&asked.extensions, IDLE_TIMEOUT, 60..=31_536_000)?;
        Ok(Allotment {
            metadata: asked.metadata.clone(),
            timeout_s: asked.timeout_s,
            extensions: kept(&asked.extensions)?,
            idle_timeout_s: idle_timeout_s.or(self.idle_timeout_s),
            renew_on_access_s,
        })
    }

    /// Lets pass labels and a time to live that a sandbox may have.
    pub(super) fn check_bounds(
        &self,
        labels: &BTreeMap<String, String>,
        timeout_s: Option<u64>,
    ) -> Result<(), Refusal> {
        if labels.len() > SANDBOX_LABELS_MAX {
            let count = labels.len();
            let message = format!("metadata has {count} labels, {SANDBOX_LABELS_MAX} at most");
            return Err(Refusal::new(400, code::INVALID_METADATA_LABEL, message));
        }
        for (key, value) in labels {
            metadata::check(key, value).map_err(|fault| {
                let shown: String = key.chars().take(64).collect();
                let message = format!("metadata '{shown}': {fault}");
                Refusal::new(400, code::INVALID_METADATA_LABEL, message)
            })?;
        }
        self.timeout(timeout_s)
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
    if asked.template_id.is_some() {
        let message = "this server has no templates: name an image and an entrypoint";
        return Err(Refusal::new(400, code::INVALID_ENTRYPOINT, message));
    }
    if asked.secure_access {
        let message = "this server does not offer secureAccess; every port needs the endpoint's \
                       token already";
        return Err(Refusal::parameter(message));
    }
    Ok(())
}

/// The snapshot that a text names; what no id can be names none.
pub(super) fn snapshot(id: &str) -> Result<SnapshotId, Refusal> {
    id.parse().map_err(|_| {
        let shown: String = id.chars().take(64).collect();
        let message = format!("there is no snapshot {shown}");
        Refusal::new(404, code::SNAPSHOT_NOT_FOUND, message)
    })
}

/// Lets pass private networks that can be.
fn networks(asked: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let membership = Membership::of(asked);
    let membership = membership.map_err(|why| Refusal::parameter(format!("extensions: {why}")));
    membership.map(drop)
}

/// The seconds of an extension.
fn seconds(
    asked: &BTreeMap<String, String>,
    name: &str,
    allowed: RangeInclusive<u64>,
) -> Result<Option<u64>, Refusal> {
    let Some(text) = asked.get(name) else {
        return Ok(None);
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: Option<u64> = digits.then(|| text.parse().ok()).flatten();
    seconds
        .filter(|seconds| allowed.contains(seconds))
        .map(Some)
        .ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            Refusal::parameter(format!(
                "extensions.{name} must be {least} to {most} seconds"
            ))
        })
}

/// Those that are shown again; others are acted upon, or have no meaning here and are dropped.
fn kept(asked: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    let is_kept = |key: &String| {
        let ours = [RENEW_ON_ACCESS, IDLE_TIMEOUT, NETWORKS, NETWORK_NAME];
        key.starts_with(KEPT_EXTENSIONS) || ours.contains(&key.as_str())
    };
    let kept = asked.iter().filter(|(key, _)| is_kept(key));
    let kept: BTreeMap<String, String> = kept
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let bytes: usize = kept
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if kept.len() > SANDBOX_EXTENSIONS_MAX || bytes > SANDBOX_EXTENSIONS_BYTES_MAX {
        return Err(Refusal::parameter(format!(
            "extensions has {} entries that are kept, of {bytes} bytes together; at most are \
             {SANDBOX_EXTENSIONS_MAX} of {SANDBOX_EXTENSIONS_BYTES_MAX} bytes",
            kept.len()
        )));
    }
    Ok(kept)
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
    if entrypoint.len() > SANDBOX_TEXTS_MAX {
        return refused("the entrypoint has more than 4096 words");
    }
    if texts_bytes(entrypoint) > ENTRYPOINT_BYTES_MAX {
        return refused("the entrypoint has more than 256 KiB: put what is long into a file");
    }
    Ok(())
}

/// What the words of an entrypoint take together, each with the byte for its end.
fn texts_bytes(entrypoint: &[String]) -> usize {
    entrypoint.iter().map(|word| word.len() + 1).sum()
}

fn environment(
    asked: BTreeMap<String, Secret>,
    entrypoint: &[String],
) -> Result<BTreeMap<String, Secret>, Refusal> {
    if asked.len() > SANDBOX_TEXTS_MAX {
        let count = asked.len();
        let message = format!("env has {count} variables, {SANDBOX_TEXTS_MAX} at most");
        return Err(Refusal::parameter(message));
    }
    let mut total = texts_bytes(entrypoint);
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
