//! Pure. Reads the request for a sandbox.

use serde_json::Value;

use super::{
    CreateSandbox, CredentialProxy, Image, ImageAuth, NetworkPolicy, NetworkRule, Platform,
    TIMEOUT_S_MIN, rules,
};
use crate::lifecycle::error::{Faults, ValidationBody};
use crate::lifecycle::hooks::Hooks;
use crate::lifecycle::lax::Need::{May, Must};
use crate::lifecycle::lax::Reader;
use crate::lifecycle::volume::Volume;
use crate::secret::Secret;

impl CreateSandbox {
    /// Reads a create's body; `None` stands for a request without a JSON body.
    ///
    /// # Errors
    /// Every fault of the body, rules between fields last.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let Some(mut reader) = Reader::body(body, &mut faults) else {
            return Err(faults.refusal());
        };
        let request = fields(&mut reader);
        if !faults.is_empty() {
            return Err(faults.refusal());
        }
        rules::check(&request, &mut faults);
        faults.or(request)
    }
}

fn fields(reader: &mut Reader<'_, '_>) -> CreateSandbox {
    let env = reader.map("env", true).unwrap_or_default();
    let timeout = reader.integer("timeout", May, TIMEOUT_S_MIN, i64::MAX);
    CreateSandbox {
        image: image(reader),
        snapshot_id: reader
            .string("snapshotId", May)
            .filter(|id| !id.trim().is_empty()),
        template_id: template(reader),
        timeout_s: timeout.map(i64::unsigned_abs),
        resource_limits: reader.map("resourceLimits", false),
        resource_requests: reader.map("resourceRequests", false),
        env: env
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect(),
        metadata: reader.map("metadata", false).unwrap_or_default(),
        lifecycle: reader
            .object("lifecycle", May)
            .map(|mut it| Hooks::read(&mut it)),
        entrypoint: reader.strings("entrypoint", May, 1),
        network_policy: policy(reader),
        credential_proxy: credential_proxy(reader),
        secure_access: reader.boolean("secureAccess", May).unwrap_or(false),
        volumes: Volume::read_all(reader),
        extensions: reader.map("extensions", false).unwrap_or_default(),
        platform: platform(reader),
    }
}

/// A blank name counts as no image.
fn image(reader: &mut Reader<'_, '_>) -> Option<Image> {
    let mut image = reader.object("image", May)?;
    let uri = image.string("uri", Must);
    let auth = image.object("auth", May).and_then(|mut auth| {
        let username = auth.string("username", Must);
        let password = auth.string("password", Must);
        Some(ImageAuth {
            username: username?,
            password: Secret::new(password?),
        })
    });
    Some(Image {
        uri: uri.filter(|uri| !uri.trim().is_empty())?,
        auth,
    })
}

fn template(reader: &mut Reader<'_, '_>) -> Option<String> {
    let id = reader.string("templateId", May)?;
    if id.is_empty() {
        reader.refuse(
            "string_too_short",
            "templateId",
            "must have at least 1 character",
        );
        return None;
    }
    Some(id)
}

fn policy(reader: &mut Reader<'_, '_>) -> Option<NetworkPolicy> {
    let mut policy = reader.object("networkPolicy", May)?;
    let default_action = policy.string("defaultAction", May);
    let mut egress = Vec::new();
    for (at, item) in policy.list("egress", May).into_iter().flatten().enumerate() {
        let Some(mut rule) = policy.item("egress", at, item) else {
            continue;
        };
        let action = rule.string("action", Must);
        let target = rule.string("target", Must);
        if target.as_deref() == Some("") {
            rule.refuse(
                "string_too_short",
                "target",
                "must have at least 1 character",
            );
        }
        if let (Some(action), Some(target)) = (action, target) {
            egress.push(NetworkRule { action, target });
        }
    }
    Some(NetworkPolicy {
        default_action,
        egress,
    })
}

fn credential_proxy(reader: &mut Reader<'_, '_>) -> Option<CredentialProxy> {
    let mut proxy = reader.object("credentialProxy", May)?;
    Some(CredentialProxy {
        enabled: proxy.boolean("enabled", May).unwrap_or(false),
    })
}

fn platform(reader: &mut Reader<'_, '_>) -> Option<Platform> {
    let mut platform = reader.object("platform", May)?;
    let os = platform.string("os", Must);
    let arch = platform.string("arch", Must);
    Some(Platform {
        os: os?.to_ascii_lowercase(),
        arch: arch?.to_ascii_lowercase(),
    })
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
