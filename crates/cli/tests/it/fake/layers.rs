//! Layers as a server tells of them, with words of a sandbox that means harm.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::{Shared, note};

/// A path that clears the screen.
pub(crate) const HARM: &str = "/workspace/\u{1b}[2J";
pub(crate) const DIFF: &str = "--- a/workspace/a\n+++ b/workspace/a\n@@ -1 +1 @@\n-one\n+two\n";
pub(crate) const ARCHIVE: &[u8] = b"an archive";

pub(super) fn routes() -> Router<Shared> {
    let kept: MethodRouter<Shared> = axum::routing::delete(forget);
    Router::new()
        .route("/x/layers/{id}", get(list).post(seal))
        .route("/x/layers/{id}/diff", get(diff))
        .route("/x/layers/{id}/kept/{layer}", kept)
}

fn layer(number: u32) -> Value {
    json!({"number": number, "parent": number - 1, "sealedAt": "2030-01-01T00:00:00Z",
           "copied": false, "stillMs": 1.5, "sizeBytes": 1, "entries": 1})
}

async fn list() -> Json<Value> {
    Json(json!({"items": [layer(1), layer(2)]}))
}

async fn seal(State(shared): State<Shared>) -> Response {
    note(&shared, "seal".to_owned());
    (StatusCode::CREATED, Json(layer(3))).into_response()
}

async fn forget(State(shared): State<Shared>, Path((_, layer)): Path<(String, u32)>) -> StatusCode {
    note(&shared, format!("forget {layer}"));
    StatusCode::NO_CONTENT
}

/// From layer 8 on it is cut, and from layer 9 on it breaks off.
async fn diff(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let (from, to) = (query["from"].as_str(), query["to"].as_str());
    note(&shared, format!("diff {from} {to}"));
    if query["format"] == "tar" {
        return ARCHIVE.into_response();
    }
    let seen = json!({"type": "file", "mode": 644, "uid": 0, "gid": 0, "size": 4, "mtimeNs": 0});
    let changed = json!({"path": "/workspace/a", "change": "changed", "differs": ["content"],
                         "old": seen, "new": seen, "diff": DIFF});
    let added = json!({"path": HARM, "change": "added", "new": seen, "binary": true});
    let mut summary = json!({"added": 1, "changed": 1, "deleted": 0, "touched": 0, "entries": 2,
                             "readBytes": 8, "outputBytes": 9, "textsCut": 0});
    if from == "8" {
        summary["cut"] = json!("time");
    }
    let last = json!({ "summary": summary });
    match from {
        "9" => format!("{changed}\n{added}\n"),
        _ => format!("{changed}\n{added}\n{last}\n"),
    }
    .into_response()
}
