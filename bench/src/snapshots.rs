//! The calls for snapshots.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::api::{self, ENTRYPOINT, LIMITS};
use crate::http::{Body, Connection, Take};
use crate::ticker;

/// How long a snapshot may take, and how often it is looked at meanwhile.
const TAKING_MAX: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(1);

/// Takes a snapshot of a sandbox and waits until it is ready; its id.
pub(crate) fn take(connection: &mut Connection, sandbox: &str) -> Result<String> {
    let path = format!("/v1/sandboxes/{sandbox}/snapshots");
    let answer = connection.call("POST", &path, &Body::Json("{}"), Take::Keep)?;
    let answer: Value = serde_json::from_slice(&api::expect(answer, 202)?.body)?;
    let id = answer["id"].as_str().context("the answer names no id")?;
    let path = format!("/v1/snapshots/{id}");
    let until = ticker::now() + TAKING_MAX;
    loop {
        let answer = connection.call("GET", &path, &Body::Nothing, Take::Keep)?;
        let found: Value = serde_json::from_slice(&api::expect(answer, 200)?.body)?;
        match found["status"]["state"].as_str() {
            Some("Ready") => return Ok(id.to_owned()),
            Some("Creating") if ticker::now() < until => {
                ticker::sleep_until(ticker::now() + LOOK);
            }
            _ => bail!("the snapshot is not ready: {found}"),
        }
    }
}

/// The body of a create of a snapshot.
pub(crate) fn order(snapshot: &str) -> String {
    json!({
        "snapshotId": snapshot,
        "timeout": 600,
        "resourceLimits": LIMITS.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "entrypoint": ENTRYPOINT,
        "secureAccess": false,
    })
    .to_string()
}

/// Removes a snapshot.
pub(crate) fn remove(connection: &mut Connection, snapshot: &str) -> Result<()> {
    let path = format!("/v1/snapshots/{snapshot}");
    let answer = connection.call("DELETE", &path, &Body::Nothing, Take::Keep)?;
    api::expect(answer, 204).map(drop)
}
