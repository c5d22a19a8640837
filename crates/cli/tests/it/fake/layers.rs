//! Layers as a server tells of them, with words of a sandbox that means harm.

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use std::collections::BTreeMap;

use super::{Shared, note};

/// A path that clears the screen.
pub(crate) const HARM: &str = "/workspace/\u{1b}[2J";
pub(crate) const DIFF: &str = "--- a/workspace/a\n+++ b/workspace/a\n@@ -1 +1 @@\n-one\n+two\n";
pub(crate) const ARCHIVE: &[u8] = b"an archive";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/x/layers/{id}/diff", get(diff))
}

/// From layer 8 on it is cut, and from layer 9 on it breaks off; from 7 on it says why.
async fn diff(
    State(shared): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let given = |name: &str| query.get(name).map_or("-", String::as_str);
    let (from, to) = (given("from"), given("to"));
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
    let why = json!({"error": {"code": "LAYER::FAILED", "message": "too slow"}});
    match from {
        "7" => format!("{changed}\n{why}\n"),
        "9" => format!("{changed}\n{added}\n"),
        _ => format!("{changed}\n{added}\n{last}\n"),
    }
    .into_response()
}
