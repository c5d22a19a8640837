//! Pure. What each operation takes and answers.

use super::super::routes::Operation;

/// What is told of an operation besides its route.
pub(super) struct Described {
    pub(super) summary: &'static str,
    pub(super) query: &'static [Parameter],
    pub(super) body: Option<Takes>,
    /// The status and content of success.
    pub(super) answer: (u16, Says),
    /// With which statuses it may be refused, besides those that follow from its route.
    pub(super) refusals: &'static [u16],
}

/// A parameter of the query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) schema: &'static str,
}

/// A body.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    pub(super) schema: &'static str,
    pub(super) is_required: bool,
    /// Its media type.
    pub(super) kind: &'static str,
}

/// The content of an answer.
#[derive(Clone, Copy)]
pub(super) enum Says {
    Nothing,
    /// JSON of this schema.
    Json(&'static str),
    /// Text of this type.
    Text(&'static str),
    /// Lines of JSON of this schema, or text of this type.
    Lines(&'static str, &'static str),
    /// JSON of this schema, or plain text.
    JsonOrText(&'static str),
}

impl Described {
    const fn new(summary: &'static str, status: u16, says: Says) -> Self {
        Self {
            summary,
            query: &[],
            body: None,
            answer: (status, says),
            refusals: &[],
        }
    }

    const fn query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    const fn takes(mut self, schema: &'static str) -> Self {
        self.body = Some(Takes {
            schema,
            is_required: true,
            kind: JSON,
        });
        self
    }

    const fn may_take(mut self, schema: &'static str) -> Self {
        self.body = Some(Takes {
            schema,
            is_required: false,
            kind: JSON,
        });
        self
    }

    /// Says that the body is none in JSON.
    const fn of_type(mut self, kind: &'static str) -> Self {
        if let Some(body) = &mut self.body {
            body.kind = kind;
        }
        self
    }

    const fn refusals(mut self, statuses: &'static [u16]) -> Self {
        self.refusals = statuses;
        self
    }
}

const JSON: &str = "application/json";

const fn of(name: &'static str, schema: &'static str) -> Parameter {
    Parameter { name, schema }
}

const LIST: &[Parameter] = &[
    of("page", "Page"),
    of("pageSize", "PageSize"),
    of("state", "Words"),
    of("metadata", "MetadataFilter"),
];
const ENDPOINT: &[Parameter] = &[
    of("use_server_proxy", "Switch"),
    of("expires", "UnixTime"),
    of("form", "AddressForm"),
];
const PAUSE: &[Parameter] = &[of("to", "PausePlace")];
const LOGS: &[Parameter] = &[of("tail", "Lines"), of("scope", "LogScope")];
const EVENTS: &[Parameter] = &[of("limit", "Happenings"), of("scope", "EventScope")];
const SUMMARY: &[Parameter] = &[of("tail", "FewLines"), of("event_limit", "FewHappenings")];
const WATCH: &[Parameter] = &[
    of("sandboxId", "Words"),
    of("state", "Words"),
    of("event", "Words"),
    of("metadata", "MetadataFilter"),
];

const COMPARE: &[Parameter] = &[
    of("from", "LayerNumber"),
    of("to", "LayerOrNow"),
    of("format", "DiffFormat"),
];
const APPROVALS: &[Parameter] = &[of("state", "ApprovalStates")];
const EXPORT: &[Parameter] = &[of("withoutHost", "Switch")];
const IMPORT: &[Parameter] = &[of("name", "SnapshotName")];
const SNAPSHOTS: &[Parameter] = &[
    of("page", "Page"),
    of("pageSize", "PageSize"),
    of("sandboxId", "Word"),
    of("name", "Word"),
    of("state", "Words"),
];

/// Writes to the store, and perhaps asks the runtime.
const CHANGES: &[u16] = &[500, 503];
const CHANGES_STATE: &[u16] = &[409, 500, 503];
const CHANGES_ACCESS: &[u16] = &[404, 409, 500, 503];

pub(super) const fn described(operation: Operation) -> Described {
    use Operation as Op;
    use Says::{Json, JsonOrText, Nothing, Text};
    let new = Described::new;
    match operation {
        Op::Health => new("Whether the server answers.", 200, Json("Health")),
        Op::Version => new("The API's version.", 200, Json("Version")),
        Op::Describe => new("This description.", 200, Json("Description")),
        Op::Create => new("Creates a sandbox.", 202, Json("CreatedSandbox"))
            .takes("CreateSandbox")
            .refusals(&[404, 409, 500, 501, 503]),
        Op::List => new("Sandboxes, the oldest first.", 200, Json("SandboxList")).query(LIST),
        Op::Get => new("A sandbox.", 200, Json("Sandbox")),
        Op::Delete => new("Ends a sandbox.", 204, Nothing).refusals(CHANGES_STATE),
        Op::Label => new("Changes a sandbox's labels.", 200, Json("Sandbox"))
            .takes("MetadataPatch")
            .refusals(CHANGES_STATE),
        Op::Renew => new("Puts off the end.", 200, Json("Expiration"))
            .takes("Expiration")
            .refusals(CHANGES_STATE),
        Op::Endpoint => new("The address of a port.", 200, Json("Endpoint"))
            .query(ENDPOINT)
            .refusals(&[409, 500]),
        Op::Logs => new("The entrypoint's output.", 200, JsonOrText("Diagnostics"))
            .query(LOGS)
            .refusals(CHANGES_STATE),
        Op::Events => new(
            "What happened to a sandbox.",
            200,
            JsonOrText("Diagnostics"),
        )
        .query(EVENTS),
        Op::Inspect => new("What is known of a sandbox.", 200, Text("text/plain")),
        Op::Summary => new("Both, and the output.", 200, Text("text/plain")).query(SUMMARY),
        Op::CreateEvent => new("Takes note of a create.", 204, Nothing).takes("CreateEvent"),
        Op::CreatePool => new("Creates a pool.", 201, Json("Pool"))
            .takes("CreatePool")
            .refusals(CHANGES_STATE),
        Op::Pools => new("All pools.", 200, Json("PoolList")),
        Op::Pool => new("A pool.", 200, Json("Pool")),
        Op::ResizePool => new("Changes the size of a pool.", 200, Json("Pool"))
            .takes("ResizePool")
            .refusals(CHANGES_STATE),
        Op::DeletePool => new("Ends a pool.", 204, Nothing).refusals(CHANGES),
        Op::Report => new("A sandbox with its end and history.", 200, Json("Report")),
        Op::Watch => new("Every change.", 200, Text("text/event-stream")).query(WATCH),
        Op::Metrics => new("The server's figures.", 200, Text("text/plain")),
        Op::Reload => new("Reads the settings again.", 200, Json("ReloadReport")).refusals(&[409]),
        Op::ListVolumes => new("All named volumes.", 200, Json("NamedVolumes")).refusals(CHANGES),
        Op::RemoveVolume => new("Removes a named volume.", 204, Nothing).refusals(CHANGES_STATE),
        Op::ListKeys => new("All keys; an admin's.", 200, Json("KeyList")),
        Op::CreateKey => new("Makes a key.", 201, Json("NewKey"))
            .takes("CreateKey")
            .refusals(CHANGES_ACCESS),
        Op::RotateKey => new("Replaces a key.", 200, Json("NewKey"))
            .may_take("RotateKey")
            .refusals(CHANGES),
        Op::RevokeKey => new("Takes a key away.", 204, Nothing).refusals(CHANGES),
        Op::ListTenants => new("All tenants; an admin's.", 200, Json("TenantList")),
        Op::CreateTenant => new("Makes a tenant.", 201, Json("Tenant"))
            .takes("CreateTenant")
            .refusals(CHANGES_ACCESS),
        Op::Tenant => new("A tenant and what it uses.", 200, Json("Tenant")),
        Op::ChangeTenant => new("Replaces what holds for a tenant.", 200, Json("Tenant"))
            .takes("TenantTerms")
            .refusals(CHANGES),
        Op::RemoveTenant => new("Removes a tenant.", 204, Nothing).refusals(CHANGES_STATE),
        other => further(other),
    }
}

const POLICY: Says = Says::Json("PolicyStatus");
/// The program that guards the sandbox may be away.
const GUARDED: &[u16] = &[409, 500, 502, 503, 504];
/// The port may be none, and the sandbox or the program not be there.
const CONNECTS: &[u16] = &[409, 422, 500, 502, 503, 504];
/// Somebody may have been quicker, and whoever waits may be gone.
const DECIDED: &[u16] = &[409, 500, 502, 503, 504];
const VERBS: &[u16] = &[409, 500, 501, 503];
/// A tenant's quota may have been taken meanwhile.
const RESUME: &[u16] = &[403, 409, 500, 501, 503];
/// Those of a create besides.
const FORKS: &[u16] = &[403, 409, 500, 501, 503];

/// The same of pauses, snapshots and layers, and of what is missing.
const fn further(operation: Operation) -> Described {
    use Operation as Op;
    use Says::{Json, Lines, Nothing, Text};
    let new = Described::new;
    match operation {
        Op::Pause => new("Lets a sandbox stand still, or rest on disk.", 202, Nothing)
            .query(PAUSE)
            .refusals(VERBS),
        Op::Resume => new("Lets a sandbox run on, or start anew.", 202, Nothing).refusals(RESUME),
        Op::CreateSnapshot => new("Saves a running sandbox.", 202, Json("Snapshot"))
            .may_take("CreateSnapshot")
            .refusals(VERBS),
        Op::ListSnapshots => {
            new("Snapshots, the youngest first.", 200, Json("SnapshotList")).query(SNAPSHOTS)
        }
        Op::Snapshot => new("A snapshot.", 200, Json("Snapshot")),
        Op::RemoveSnapshot => new("Removes a snapshot.", 204, Nothing).refusals(CHANGES_STATE),
        Op::ExportSnapshot => new(
            "A snapshot as an OCI image.",
            200,
            Text("application/x-tar"),
        )
        .query(EXPORT)
        .refusals(VERBS),
        Op::ImportSnapshot => new("Makes a snapshot of an OCI image.", 201, Json("Snapshot"))
            .takes("ImageArchive")
            .of_type("application/octet-stream")
            .query(IMPORT)
            .refusals(VERBS),
        Op::SealLayer => new("Seals what a sandbox has written.", 201, Json("Layer"))
            .may_take("SealLayer")
            .refusals(VERBS),
        Op::ListLayers => new(
            "The layers of a sandbox, oldest first.",
            200,
            Json("LayerList"),
        )
        .refusals(VERBS),
        Op::InspectLayer => new("A layer with its digest.", 200, Json("Layer")).refusals(VERBS),
        Op::ForgetLayer => new("Forgets a layer.", 204, Nothing).refusals(VERBS),
        Op::CompareLayers => new(
            "What differs between two layers.",
            200,
            Lines("Difference", "application/x-tar"),
        )
        .query(COMPARE)
        .refusals(VERBS),
        Op::CommitLayer => new("Makes a snapshot of a layer.", 202, Json("Snapshot"))
            .may_take("CommitLayer")
            .refusals(VERBS),
        Op::Undo => new("Starts a sandbox anew from a layer.", 200, Json("Sandbox"))
            .takes("Undo")
            .refusals(VERBS),
        Op::Fork => new("Makes sandboxes of a layer.", 201, Json("Forked"))
            .may_take("Fork")
            .refusals(FORKS),
        other => outbound(other),
    }
}

/// The same of what sandboxes may send out, and of what somebody is asked.
const fn outbound(operation: Operation) -> Described {
    use Operation as Op;
    use Says::Json;
    let new = Described::new;
    match operation {
        Op::NetworkPolicy => {
            new("What a sandbox may send out.", 200, Json("PolicyStatus")).refusals(GUARDED)
        }
        Op::SetNetworkPolicy => new("Replaces what a sandbox may send out.", 200, POLICY)
            .takes("NetworkPolicy")
            .refusals(GUARDED),
        Op::PatchNetworkPolicy => new("Puts rules before others.", 200, POLICY)
            .takes("NetworkRules")
            .refusals(GUARDED),
        Op::CutNetworkPolicy => new("Takes the rules of targets away.", 200, POLICY)
            .takes("Targets")
            .refusals(GUARDED),
        Op::Connections => new(
            "What a sandbox reached or tried to.",
            200,
            Json("Connections"),
        )
        .refusals(GUARDED),
        Op::Connect => new(
            "Bytes to a port of a sandbox and back, for a connection that upgrades to `tcp`.",
            101,
            Says::Nothing,
        )
        .refusals(CONNECTS),
        Op::ListApprovals => {
            new("What somebody is asked.", 200, Json("ApprovalList")).query(APPROVALS)
        }
        Op::Approval => new("Something that somebody is asked.", 200, Json("Approval")),
        Op::Approve => new("Allows it.", 200, Json("Approval"))
            .may_take("Decision")
            .refusals(DECIDED),
        Op::Reject => new("Refuses it.", 200, Json("Approval"))
            .may_take("Decision")
            .refusals(DECIDED),
        // All others have been told of, and templates only other servers have.
        _ => new("Not offered by this server.", 200, Json("Nothing")).refusals(&[501]),
    }
}
