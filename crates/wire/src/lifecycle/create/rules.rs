//! Pure. Rules between the fields of the request for a sandbox.

use super::{CreateSandbox, POOL_REF, RESERVED_ENV};
use crate::lifecycle::error::Faults;

pub(super) fn check(request: &CreateSandbox, faults: &mut Faults) {
    if request.env.contains_key(RESERVED_ENV) {
        faults.add_rule("the environment name OPENSANDBOX_LIFECYCLE belongs to the server");
    }
    if request.template_id.is_some() {
        return template(request, faults);
    }
    let credentials = request.credential_proxy.is_some_and(|proxy| proxy.enabled);
    if credentials && request.network_policy.is_none() {
        faults.add_rule("credentialProxy needs networkPolicy");
    }
    let pool = request
        .extensions
        .get(POOL_REF)
        .is_some_and(|name| !name.trim().is_empty());
    if pool {
        if request.lifecycle.is_some() || request.snapshot_id.is_some() || credentials {
            faults.add_rule("poolRef excludes lifecycle, snapshotId and credentialProxy");
        }
        return;
    }
    if request.image.is_some() == request.snapshot_id.is_some() {
        faults.add_rule("exactly one of image and snapshotId is needed");
    }
    if request.image.is_some() && request.entrypoint.is_none() {
        faults.add_rule("entrypoint is needed with image");
    }
    if request.resource_limits.is_none() {
        faults.add_rule("resourceLimits is needed");
    }
}

fn template(request: &CreateSandbox, faults: &mut Faults) {
    let excluded = [
        ("image", request.image.is_some()),
        ("snapshotId", request.snapshot_id.is_some()),
        ("entrypoint", request.entrypoint.is_some()),
        ("env", !request.env.is_empty()),
        ("resourceLimits", request.resource_limits.is_some()),
        ("resourceRequests", request.resource_requests.is_some()),
        ("volumes", !request.volumes.is_empty()),
        ("platform", request.platform.is_some()),
        ("credentialProxy", request.credential_proxy.is_some()),
        ("secureAccess", request.secure_access),
        ("lifecycle", request.lifecycle.is_some()),
    ];
    for (name, _) in excluded.iter().filter(|(_, present)| *present) {
        faults.add_rule(&format!("templateId excludes {name}"));
    }
    if request.timeout_s.is_none() {
        faults.add_rule("templateId needs timeout");
    }
}
