//! Connections, streams and approvals as a server tells of them, with words of a sandbox that means
//! harm.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::{ID, Shared, note, refusal};

/// A name that clears the screen.
pub(crate) const HARM: &str = "\u{1b}[2J.example";
/// The one that waits, and one that does not any more.
pub(crate) const WAITS: &str = "aaaaaaaa-58a0-4d67-a3f8-0a1b2c3d4e5f";
pub(crate) const OVER: &str = "bbbbbbbb-58a0-4d67-a3f8-0a1b2c3d4e5f";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/x/sandboxes/{id}/connections", get(connections))
        .route("/x/sandboxes/{id}/tcp/{port}", get(stream))
        .route("/x/approvals", get(approvals))
        .route("/x/approvals/{id}", get(show))
        .route("/x/approvals/{id}/{word}", post(decide))
}

async fn connections() -> Json<Value> {
    let one = json!({"id": 1, "protocol": "tcp", "name": HARM, "address": "192.0.2.1", "port": 443,
                     "verdict": "deny", "reason": "no_rule", "rule": "deny *.example",
                     "openedAt": "2030-01-01T00:00:00Z", "sentBytes": 0, "receivedBytes": 0});
    let other = json!({"id": 2, "protocol": "dns", "name": "a.example", "verdict": "allow",
                       "reason": "rule", "openedAt": "2030-01-01T00:00:00Z", "sentBytes": 1,
                       "receivedBytes": 2});
    Json(json!({"connections": [one, other], "forgotten": 3}))
}

async fn stream() -> Response {
    let message = format!("{HARM} is paused");
    refusal(
        StatusCode::CONFLICT,
        "DOCKER::SANDBOX_NOT_RUNNING",
        &message,
    )
}

fn approval(id: &str, state: &str) -> Value {
    json!({"id": id, "kind": "egress", "sandboxId": ID, "subject": HARM, "state": state,
           "askedAt": "2030-01-01T00:00:00Z", "deadline": "2030-01-01T00:02:00Z",
           "default": "reject"})
}

async fn approvals(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Json<Value> {
    let state = query.get("state").map_or("-", String::as_str);
    note(&shared, format!("approvals {state}"));
    let all = [approval(WAITS, "pending"), approval(OVER, "expired")];
    let fits = |it: &&Value| state == "-" || it["state"] == state;
    let items: Vec<&Value> = all.iter().filter(fits).collect();
    Json(json!({ "items": items }))
}

async fn show(Path(id): Path<String>) -> Json<Value> {
    Json(approval(&id, "pending"))
}

async fn decide(
    State(shared): State<Shared>,
    Path((id, word)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Response {
    note(&shared, format!("{word} {id} {body}"));
    if id == WAITS {
        return Json(approval(WAITS, "approved")).into_response();
    }
    refusal(
        StatusCode::CONFLICT,
        "APPROVAL::NOT_PENDING",
        "it is expired already",
    )
}
