//! A world with tenants: their keys, and calls with them.

use barchan_wire::id::SandboxId;
use serde_json::{Value, json};

use crate::world::{Answer, Call, World, request};

impl World {
    /// A tenant with this quota, and a key of it.
    pub(crate) async fn tenant(&self, name: &str, quota: &Value) -> String {
        let body = json!({"name": name, "quota": quota});
        let made = self.call("POST", "/x/tenants").json(&body).send().await;
        assert_eq!(made.status, 201, "{made:?}");
        self.new_key(&json!({"label": "test", "tenant": name}))
            .await
            .1
    }

    /// A key, by its id and as a text.
    pub(crate) async fn new_key(&self, body: &Value) -> (String, String) {
        let made = self.call("POST", "/x/keys").json(body).send().await;
        assert_eq!(made.status, 201, "{made:?}");
        parts(&made)
    }

    /// A call over TCP with this key.
    pub(crate) fn with_key(&self, key: &str, method: &str, path: &str) -> Call {
        self.bare(method, path).header("open-sandbox-api-key", key)
    }

    /// A request for a sandbox with this key.
    pub(crate) async fn create_with(&self, key: &str, changes: &Value) -> Answer {
        let call = self.with_key(key, "POST", "/v1/sandboxes");
        call.json(&request(changes)).send().await
    }

    /// A sandbox of whoever has this key.
    pub(crate) async fn sandbox_of(&self, key: &str) -> SandboxId {
        let answer = self.create_with(key, &json!({})).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().parse().unwrap()
    }
}

/// The id and the text of a key that was just made.
pub(crate) fn parts(made: &Answer) -> (String, String) {
    let made = made.json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}
