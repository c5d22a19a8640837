//! What the operator has switched off.

use barchan_runtime::EXECD_PORT;
use barchan_wire::egress::EGRESS_PORT;
use barchan_wire::lifecycle::{Hooks, code};

use super::Api;
use super::errors::Refusal;
use super::routes::Operation;

impl Api {
    /// Lets pass what is offered.
    pub(super) fn offer(&self, operation: Operation) -> Result<(), Refusal> {
        let on = &self.features;
        let flags: &[(bool, &str)] = match operation {
            Operation::Pause | Operation::Resume => &[(on.pause, "pause")],
            Operation::CreatePool
            | Operation::Pools
            | Operation::Pool
            | Operation::ResizePool
            | Operation::DeletePool => &[(on.pools, "pools")],
            Operation::CreateSnapshot
            | Operation::ListSnapshots
            | Operation::Snapshot
            | Operation::RemoveSnapshot => &[(on.snapshots, "snapshots")],
            Operation::ExportSnapshot | Operation::ImportSnapshot | Operation::CommitLayer => {
                &[(on.own_api, "own_api"), (on.snapshots, "snapshots")]
            }
            Operation::Logs => &[(on.logs, "logs")],
            Operation::Events | Operation::Inspect | Operation::Summary => {
                &[(on.diagnostics, "diagnostics")]
            }
            Operation::Report
            | Operation::Connections
            | Operation::Connect
            | Operation::ListApprovals
            | Operation::Approval
            | Operation::Approve
            | Operation::Reject
            | Operation::SealLayer
            | Operation::ListLayers
            | Operation::InspectLayer
            | Operation::ForgetLayer
            | Operation::CompareLayers
            | Operation::Undo
            | Operation::Fork
            | Operation::ListVolumes
            | Operation::RemoveVolume
            | Operation::ListKeys
            | Operation::CreateKey
            | Operation::RotateKey
            | Operation::RevokeKey
            | Operation::ListTenants
            | Operation::CreateTenant
            | Operation::Tenant
            | Operation::ChangeTenant
            | Operation::RemoveTenant => &[(on.own_api, "own_api")],
            Operation::Watch => &[(on.own_api, "own_api"), (on.events, "events")],
            Operation::Reload => &[(on.own_api, "own_api"), (on.reload, "reload")],
            _ => &[],
        };
        let off = flags.iter().find(|(is_on, _)| !is_on);
        off.map_or(Ok(()), |(_, flag)| Err(refused(flag)))
    }

    /// Lets pass a sandbox without hooks, and others if those are offered.
    pub(super) fn offer_hooks(&self, hooks: Option<&Hooks>) -> Result<(), Refusal> {
        let none = |hooks: &Hooks| hooks.pre_start.is_none() && hooks.periodic.is_empty();
        match hooks.is_none_or(none) || self.features.hooks {
            true => Ok(()),
            false => Err(refused("hooks")),
        }
    }

    /// Lets pass ports that no program of the sandbox has, and others if those are offered.
    pub(super) fn offer_port(&self, port: u16) -> Result<(), Refusal> {
        match matches!(port, EXECD_PORT | EGRESS_PORT) || self.features.service_ports {
            true => Ok(()),
            false => Err(refused("service_ports")),
        }
    }
}

fn refused(flag: &str) -> Refusal {
    let message = format!("this server's operator has switched it off with `features.{flag}`");
    Refusal::new(403, code::FEATURE_DISABLED, message)
}
