//! Pure. Every route but the proxy's.

use http::Method;

use super::{Mount, Operation};

/// A method, where it is served, its path without the first slash, and what it is. A part `*`
/// stands for any text but nothing.
pub(super) type Route = (Method, Mount, &'static str, Operation);

pub(super) static ROUTES: [Route; 65] = {
    use Mount::{Both, Root, V1};
    use Operation as Op;
    const GET: Method = Method::GET;
    const POST: Method = Method::POST;
    const PUT: Method = Method::PUT;
    const PATCH: Method = Method::PATCH;
    const DELETE: Method = Method::DELETE;
    [
        (GET, Root, "health", Op::Health),
        (GET, Root, "version", Op::Version),
        (GET, Root, "openapi.json", Op::Describe),
        (POST, Both, "sandboxes", Op::Create),
        (GET, Both, "sandboxes", Op::List),
        (GET, Both, "sandboxes/*", Op::Get),
        (DELETE, Both, "sandboxes/*", Op::Delete),
        (PATCH, Both, "sandboxes/*/metadata", Op::Label),
        (POST, Both, "sandboxes/*/pause", Op::Pause),
        (POST, Both, "sandboxes/*/resume", Op::Resume),
        (POST, Both, "sandboxes/*/renew-expiration", Op::Renew),
        (GET, Both, "sandboxes/*/endpoints/*", Op::Endpoint),
        (GET, Both, "sandboxes/*/diagnostics/logs", Op::Logs),
        (GET, Both, "sandboxes/*/diagnostics/events", Op::Events),
        (GET, Both, "sandboxes/*/diagnostics/inspect", Op::Inspect),
        (GET, Both, "sandboxes/*/diagnostics/summary", Op::Summary),
        (GET, Both, "sandboxes/*/networkpolicy", Op::NetworkPolicy),
        (PUT, Both, "sandboxes/*/networkpolicy", Op::SetNetworkPolicy),
        (
            PATCH,
            Both,
            "sandboxes/*/networkpolicy",
            Op::PatchNetworkPolicy,
        ),
        (
            DELETE,
            Both,
            "sandboxes/*/networkpolicy",
            Op::CutNetworkPolicy,
        ),
        (POST, Both, "sandboxes/*/snapshots", Op::CreateSnapshot),
        (GET, Both, "snapshots", Op::ListSnapshots),
        (GET, Both, "snapshots/*", Op::Snapshot),
        (DELETE, Both, "snapshots/*", Op::RemoveSnapshot),
        (POST, Both, "pools", Op::CreatePool),
        (GET, Both, "pools", Op::Pools),
        (GET, Both, "pools/*", Op::Pool),
        (PUT, Both, "pools/*", Op::ResizePool),
        (DELETE, Both, "pools/*", Op::DeletePool),
        (POST, Both, "templates", Op::Templates),
        (GET, Both, "templates", Op::Templates),
        (GET, Both, "templates/*", Op::Templates),
        (DELETE, Both, "templates/*", Op::Templates),
        (POST, V1, "metrics/events", Op::CreateEvent),
        (GET, Root, "metrics", Op::Metrics),
        (GET, Root, "x/sandboxes/*", Op::Report),
        (GET, Root, "x/sandboxes/*/connections", Op::Connections),
        (GET, Root, "x/sandboxes/*/tcp/*", Op::Connect),
        (GET, Root, "x/events", Op::Watch),
        (GET, Root, "x/approvals", Op::ListApprovals),
        (GET, Root, "x/approvals/*", Op::Approval),
        (POST, Root, "x/approvals/*/approve", Op::Approve),
        (POST, Root, "x/approvals/*/reject", Op::Reject),
        (POST, Root, "x/reload", Op::Reload),
        (GET, Root, "x/volumes", Op::ListVolumes),
        (DELETE, Root, "x/volumes/*", Op::RemoveVolume),
        (GET, Root, "x/snapshots/*/export", Op::ExportSnapshot),
        (POST, Root, "x/snapshots/import", Op::ImportSnapshot),
        (POST, Root, "x/layers/*", Op::SealLayer),
        (GET, Root, "x/layers/*", Op::ListLayers),
        (GET, Root, "x/layers/*/kept/*", Op::InspectLayer),
        (DELETE, Root, "x/layers/*/kept/*", Op::ForgetLayer),
        (GET, Root, "x/layers/*/diff", Op::CompareLayers),
        (POST, Root, "x/layers/*/commit", Op::CommitLayer),
        (POST, Root, "x/layers/*/undo", Op::Undo),
        (POST, Root, "x/layers/*/fork", Op::Fork),
        (GET, Root, "x/keys", Op::ListKeys),
        (POST, Root, "x/keys", Op::CreateKey),
        (POST, Root, "x/keys/*/rotate", Op::RotateKey),
        (DELETE, Root, "x/keys/*", Op::RevokeKey),
        (GET, Root, "x/tenants", Op::ListTenants),
        (POST, Root, "x/tenants", Op::CreateTenant),
        (GET, Root, "x/tenants/*", Op::Tenant),
        (PUT, Root, "x/tenants/*", Op::ChangeTenant),
        (DELETE, Root, "x/tenants/*", Op::RemoveTenant),
    ]
};
