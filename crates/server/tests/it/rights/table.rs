//! Who may do what: one row for each operation.

use serde_json::{Value, json};

use crate::world::request;

/// What a row's path names.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Names {
    Nothing,
    /// A sandbox of the tenant.
    Sandbox,
    /// A snapshot of the tenant that is ready.
    Snapshot,
    /// A thing that the admin has made for the row.
    Made(&'static str),
}
use Names::{Made, Nothing, Sandbox, Snapshot};

/// An operation, what it names, its body, and what the owning tenant, another tenant and an admin
/// are answered.
pub(super) type Row<Route = String> = (Route, Names, Value, [&'static str; 3]);

pub(super) const GONE: &str = "404 DOCKER::SANDBOX_NOT_FOUND";
const ADMIN: &str = "403 ADMIN_ONLY";
const ON_HOST: &str = "409 SNAPSHOT::STANDS_ON_HOST";
const NO_SNAPSHOT: &str = "404 SNAPSHOT::NOT_FOUND";
const NO_APPROVAL: &str = "404 APPROVAL::NOT_FOUND";
const NO_LAYER: &str = "404 LAYER::NOT_FOUND";
const TEMPLATE: &str = "501 FSB::API_NOT_SUPPORTED";
const POLICY: &str = "502 BACKEND_CONNECTION_FAILED";
/// The world's clock stands before it.
const LATER: &str = "2100-01-01T00:00:00Z";

pub(super) fn rows() -> Vec<Row> {
    let diagnostics = ["events", "inspect", "summary"].map(|kind| {
        let route = format!("GET /v1/sandboxes/*/diagnostics/{kind}");
        (route, Sandbox, Value::Null, ["200", GONE, "200"])
    });
    let rows = for_tenants().into_iter().chain(for_admins());
    let rows = rows.chain(for_approvals()).chain(for_policies());
    let rows = rows.chain(for_images()).chain(for_layers());
    let rows = rows.chain(for_everybody()).chain(for_streams());
    let rows = rows.map(|(route, names, body, expected)| (route.to_owned(), names, body, expected));
    rows.chain(diagnostics).collect()
}

fn for_admins() -> Vec<Row<&'static str>> {
    let none = Value::Null;
    let pool = json!({
        "name": "made", "template": {"spec": {"containers": [{"image": "host"}]}},
        "capacitySpec": {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 0},
    });
    let capacity = json!({ "capacitySpec": pool["capacitySpec"] });
    vec![
        ("POST /v1/pools", Nothing, pool, [ADMIN, ADMIN, "201"]),
        (
            "GET /v1/pools",
            Nothing,
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "GET /v1/pools/*",
            Made("pool"),
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "PUT /v1/pools/*",
            Made("pool"),
            capacity,
            [ADMIN, ADMIN, "200"],
        ),
        (
            "DELETE /v1/pools/*",
            Made("pool"),
            none.clone(),
            [ADMIN, ADMIN, "204"],
        ),
        ("GET /metrics", Nothing, none.clone(), [ADMIN, ADMIN, "200"]),
        ("GET /x/keys", Nothing, none.clone(), [ADMIN, ADMIN, "200"]),
        (
            "POST /x/keys",
            Nothing,
            json!({"label": "l"}),
            [ADMIN, ADMIN, "201"],
        ),
        (
            "POST /x/keys/*/rotate",
            Made("key"),
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "DELETE /x/keys/*",
            Made("key"),
            none.clone(),
            [ADMIN, ADMIN, "204"],
        ),
        (
            "GET /x/tenants",
            Nothing,
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "POST /x/tenants",
            Nothing,
            json!({"name": "made"}),
            [ADMIN, ADMIN, "201"],
        ),
        (
            "GET /x/tenants/*",
            Made("tenant"),
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "PUT /x/tenants/*",
            Made("tenant"),
            json!({}),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "DELETE /x/tenants/*",
            Made("tenant"),
            none,
            [ADMIN, ADMIN, "204"],
        ),
    ]
}

fn for_approvals() -> [Row<&'static str>; 4] {
    let none = Value::Null;
    [
        ("GET /x/approvals", Nothing, none.clone(), ["200"; 3]),
        (
            "GET /x/approvals/*",
            Sandbox,
            none.clone(),
            [NO_APPROVAL; 3],
        ),
        (
            "POST /x/approvals/*/approve",
            Sandbox,
            none.clone(),
            [ADMIN, ADMIN, NO_APPROVAL],
        ),
        (
            "POST /x/approvals/*/reject",
            Sandbox,
            none,
            [ADMIN, ADMIN, NO_APPROVAL],
        ),
    ]
}

/// Where nothing guards sandboxes.
fn for_policies() -> [Row<&'static str>; 5] {
    [
        "GET /v1/sandboxes/*/networkpolicy",
        "PUT /v1/sandboxes/*/networkpolicy",
        "PATCH /v1/sandboxes/*/networkpolicy",
        "DELETE /v1/sandboxes/*/networkpolicy",
        "GET /x/sandboxes/*/connections",
    ]
    .map(|route| (route, Sandbox, Value::Null, [POLICY, GONE, POLICY]))
}

/// Of whoever asks for no other protocol.
fn for_streams() -> [Row<&'static str>; 1] {
    let bad = "400 BAD_REQUEST";
    let route = "GET /x/sandboxes/*/tcp/80";
    [(route, Sandbox, Value::Null, [bad, GONE, bad])]
}

fn for_everybody() -> [Row<&'static str>; 3] {
    ["GET /health", "GET /openapi.json", "GET /version"]
        .map(|route| (route, Nothing, Value::Null, ["200"; 3]))
}

fn for_images() -> [Row<&'static str>; 2] {
    let none = Value::Null;
    [
        (
            "GET /x/snapshots/*/export",
            Snapshot,
            none.clone(),
            // It is of a sandbox on `host`.
            [ON_HOST, NO_SNAPSHOT, ON_HOST],
        ),
        (
            "POST /x/snapshots/import",
            Nothing,
            none,
            ["400 SNAPSHOT::IMAGE_INVALID"; 3],
        ),
    ]
}

fn for_layers() -> [Row<&'static str>; 8] {
    let none = Value::Null;
    let back = json!({"layer": 0});
    [
        (
            "POST /x/layers/*",
            Sandbox,
            none.clone(),
            ["201", GONE, "201"],
        ),
        (
            "GET /x/layers/*",
            Sandbox,
            none.clone(),
            ["200", GONE, "200"],
        ),
        (
            "GET /x/layers/*/kept/*",
            Sandbox,
            none.clone(),
            [NO_LAYER, GONE, NO_LAYER],
        ),
        (
            "DELETE /x/layers/*/kept/*",
            Sandbox,
            none.clone(),
            [NO_LAYER, GONE, NO_LAYER],
        ),
        (
            "GET /x/layers/*/diff",
            Sandbox,
            none.clone(),
            [NO_LAYER, GONE, NO_LAYER],
        ),
        (
            "POST /x/layers/*/commit",
            Sandbox,
            none.clone(),
            ["202", GONE, "202"],
        ),
        ("POST /x/layers/*/undo", Sandbox, back, ["200", GONE, "200"]),
        ("POST /x/layers/*/fork", Sandbox, none, ["201", GONE, "201"]),
    ]
}

fn for_tenants() -> Vec<Row<&'static str>> {
    let none = Value::Null;
    vec![
        (
            "POST /v1/sandboxes",
            Nothing,
            request(&json!({})),
            ["202", "202", "202"],
        ),
        (
            "GET /v1/sandboxes",
            Nothing,
            none.clone(),
            ["200", "200", "200"],
        ),
        (
            "GET /v1/sandboxes/*",
            Sandbox,
            none.clone(),
            ["200", GONE, "200"],
        ),
        (
            "DELETE /v1/sandboxes/*",
            Sandbox,
            none.clone(),
            ["204", GONE, "204"],
        ),
        (
            "PATCH /v1/sandboxes/*/metadata",
            Sandbox,
            json!({"a": "b"}),
            ["200", GONE, "200"],
        ),
        (
            "POST /v1/sandboxes/*/pause",
            Sandbox,
            none.clone(),
            ["202", GONE, "202"],
        ),
        (
            "POST /v1/sandboxes/*/resume",
            Sandbox,
            none.clone(),
            [
                "409 DOCKER::SANDBOX_NOT_PAUSED",
                GONE,
                "409 DOCKER::SANDBOX_NOT_PAUSED",
            ],
        ),
        (
            "POST /v1/sandboxes/*/renew-expiration",
            Sandbox,
            json!({"expiresAt": LATER}),
            ["200", GONE, "200"],
        ),
        (
            "GET /v1/sandboxes/*/endpoints/80",
            Sandbox,
            none.clone(),
            ["200", GONE, "200"],
        ),
        (
            "GET /v1/sandboxes/*/diagnostics/logs",
            Sandbox,
            none.clone(),
            ["200", GONE, "200"],
        ),
        (
            "POST /v1/sandboxes/*/snapshots",
            Sandbox,
            none.clone(),
            ["202", GONE, "202"],
        ),
        ("GET /v1/snapshots", Nothing, none.clone(), ["200"; 3]),
        (
            "GET /v1/snapshots/*",
            Snapshot,
            none.clone(),
            ["200", NO_SNAPSHOT, "200"],
        ),
        (
            "DELETE /v1/snapshots/*",
            Snapshot,
            none.clone(),
            ["204", NO_SNAPSHOT, "204"],
        ),
        ("POST /v1/templates", Nothing, none.clone(), [TEMPLATE; 3]),
        ("GET /v1/templates", Nothing, none.clone(), [TEMPLATE; 3]),
        ("GET /v1/templates/*", Sandbox, none.clone(), [TEMPLATE; 3]),
        (
            "DELETE /v1/templates/*",
            Sandbox,
            none.clone(),
            [TEMPLATE; 3],
        ),
        (
            "POST /v1/metrics/events",
            Nothing,
            json!({
                "event_type": "sandbox.create", "timestamp": LATER, "success": true,
                "create_duration_ms": 5,
            }),
            ["204", "204", "204"],
        ),
        (
            "GET /x/sandboxes/*",
            Sandbox,
            none.clone(),
            ["200", GONE, "200"],
        ),
        (
            "GET /x/events",
            Nothing,
            none.clone(),
            ["200", "200", "200"],
        ),
        (
            "POST /x/reload",
            Nothing,
            none.clone(),
            [ADMIN, ADMIN, "200"],
        ),
        (
            "GET /x/volumes",
            Nothing,
            none.clone(),
            ["200", "200", "200"],
        ),
        (
            "DELETE /x/volumes/*",
            Made("volume"),
            none.clone(),
            [
                "204",
                "404 VOLUME::PVC_NOT_FOUND",
                "404 VOLUME::PVC_NOT_FOUND",
            ],
        ),
    ]
}
