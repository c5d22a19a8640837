//! Pure. What each operation needs, and what the audit log calls it.

use barchan_wire::lifecycle::code;

use super::errors::Refusal;
use super::routes::{Operation, Place};

/// Who may ask for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Anybody.
    Nothing,
    /// Whoever has a key; a tenant's is for what is the tenant's.
    Key,
    /// Whoever has a key, or the token of the sandbox: it leads to what runs in there.
    Token,
    /// An admin: it concerns all tenants, or the host.
    Admin,
}

/// What the variable part of an operation's path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    None,
    Sandbox,
    /// A sandbox, and a port of it.
    Port,
    Other,
}

/// What there is to know of an operation before it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    /// Its name in the audit log.
    pub(super) name: &'static str,
    pub(super) need: Need,
    /// Whether it changes something, so that it is noted who asked for it.
    pub(super) is_change: bool,
    pub(super) subject: Subject,
}

impl Operation {
    /// What it needs.
    pub(super) fn rights(self) -> Rights {
        let (name, need, is_change, subject) = self.row();
        Rights {
            name,
            need,
            is_change,
            subject,
        }
    }

    /// Every operation has its line here: there is no default.
    fn row(self) -> (&'static str, Need, bool, Subject) {
        use Need::{Admin, Key, Nothing, Token};
        use Subject::{None, Other, Port, Sandbox};
        match self {
            Self::Health => ("health", Nothing, false, None),
            Self::Version => ("version", Nothing, false, None),
            Self::Describe => ("describe", Nothing, false, None),
            Self::Create => ("sandbox.create", Key, true, None),
            Self::List => ("sandbox.list", Key, false, None),
            Self::Get => ("sandbox.get", Key, false, Sandbox),
            Self::Delete => ("sandbox.delete", Key, true, Sandbox),
            Self::Label => ("sandbox.label", Key, true, Sandbox),
            Self::Pause => ("sandbox.pause", Key, true, Sandbox),
            Self::Resume => ("sandbox.resume", Key, true, Sandbox),
            Self::Renew => ("sandbox.renew", Key, true, Sandbox),
            Self::Endpoint => ("sandbox.endpoint", Key, false, Sandbox),
            Self::Logs => ("sandbox.logs", Key, false, Sandbox),
            Self::Events => ("sandbox.events", Key, false, Sandbox),
            Self::Inspect => ("sandbox.inspect", Key, false, Sandbox),
            Self::Summary => ("sandbox.summary", Key, false, Sandbox),
            Self::CreateEvent => ("metrics.event", Key, false, None),
            Self::CreatePool => ("pool.create", Admin, true, None),
            Self::Pools => ("pool.list", Admin, false, None),
            Self::Pool => ("pool.get", Admin, false, Other),
            Self::ResizePool => ("pool.resize", Admin, true, Other),
            Self::DeletePool => ("pool.delete", Admin, true, Other),
            Self::Report => ("sandbox.report", Key, false, Sandbox),
            Self::Watch => ("events.watch", Key, false, None),
            // They are of all tenants together.
            Self::Metrics => ("server.metrics", Admin, false, None),
            Self::Reload => ("settings.reload", Admin, true, None),
            Self::ListVolumes => ("volume.list", Key, false, None),
            Self::RemoveVolume => ("volume.delete", Key, true, Other),
            Self::ListKeys => ("key.list", Admin, false, None),
            Self::CreateKey => ("key.create", Admin, true, None),
            Self::RotateKey => ("key.rotate", Admin, true, Other),
            Self::RevokeKey => ("key.revoke", Admin, true, Other),
            Self::ListTenants => ("tenant.list", Admin, false, None),
            Self::CreateTenant => ("tenant.create", Admin, true, None),
            Self::Tenant => ("tenant.get", Admin, false, Other),
            Self::ChangeTenant => ("tenant.change", Admin, true, Other),
            Self::RemoveTenant => ("tenant.delete", Admin, true, Other),
            Self::NetworkPolicy => ("sandbox.policy", Key, false, Sandbox),
            Self::SetNetworkPolicy | Self::PatchNetworkPolicy | Self::CutNetworkPolicy => {
                ("sandbox.policy.change", Key, true, Sandbox)
            }
            Self::Connections => ("sandbox.connections", Key, false, Sandbox),
            Self::Connect => ("sandbox.connect", Token, true, Port),
            Self::CreateSnapshot => ("snapshot.create", Key, true, Sandbox),
            Self::ListSnapshots => ("snapshot.list", Key, false, None),
            Self::Snapshot => ("snapshot.get", Key, false, Other),
            Self::RemoveSnapshot => ("snapshot.delete", Key, true, Other),
            Self::ExportSnapshot => ("snapshot.export", Key, false, Other),
            Self::ImportSnapshot => ("snapshot.import", Key, true, None),
            Self::SealLayer => ("layer.seal", Key, true, Sandbox),
            Self::ListLayers => ("layer.list", Key, false, Sandbox),
            Self::InspectLayer => ("layer.get", Key, false, Sandbox),
            Self::ForgetLayer => ("layer.forget", Key, true, Sandbox),
            Self::CompareLayers => ("layer.compare", Key, false, Sandbox),
            Self::CommitLayer => ("layer.commit", Key, true, Sandbox),
            Self::Undo => ("sandbox.undo", Key, true, Sandbox),
            Self::Fork => ("sandbox.fork", Key, true, Sandbox),
            // A tenant's sandboxes ask the operator.
            Self::ListApprovals => ("approval.list", Key, false, None),
            Self::Approval => ("approval.get", Key, false, Other),
            Self::Approve => ("approval.approve", Admin, true, Other),
            Self::Reject => ("approval.reject", Admin, true, Other),
            Self::Templates => ("template", Key, false, None),
        }
    }
}

impl Rights {
    /// Lets pass who may.
    pub(super) fn check(&self, is_tenant: bool) -> Result<(), Refusal> {
        match self.need {
            Need::Admin if is_tenant => Err(admin_only()),
            _ => Ok(()),
        }
    }

    /// The sandbox and the other thing that a path names.
    pub(super) fn subject_of(&self, place: &Place) -> (Option<String>, Option<String>) {
        let shown = || Some(place.id.chars().take(64).collect());
        match self.subject {
            Subject::None => (None, None),
            Subject::Sandbox => (shown(), None),
            Subject::Port => (shown(), Some(place.port.chars().take(8).collect())),
            Subject::Other => (None, shown()),
        }
    }
}

/// A tenant asks for what only admins may. Nothing is told of what there is.
pub(super) fn admin_only() -> Refusal {
    let message = "only an admin's key may do that: ask the operator of this server";
    Refusal::new(403, code::ADMIN_ONLY, message)
}
