//! Every operation, and who may do it. One that is not in the table fails the test.

mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::guest;
use crate::world::{Call, Set, World};
use table::{GONE, Names, rows};

/// Makes what a row names, and gives its name. `number` tells rows apart.
async fn make(world: &World, what: &str, number: usize) -> String {
    let name = format!("{what}-{number}");
    match what {
        "key" => return world.new_key(&json!({"label": "l"})).await.0,
        "tenant" => {
            let body = json!({ "name": name });
            let made = world.call("POST", "/x/tenants").json(&body).send().await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        "pool" => {
            let body = json!({
                "name": name, "template": {"spec": {"containers": [{"image": "host"}]}},
                "capacitySpec": {"bufferMin": 0, "bufferMax": 0, "poolMin": 0, "poolMax": 0},
            });
            let made = world.call("POST", "/v1/pools").json(&body).send().await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        _ => {
            let claim = json!({"claimName": format!("a--{name}"), "storage": "16Mi"});
            let volume = json!({"name": "v", "mountPath": "/m", "pvc": claim});
            let maker = world.sandbox_with(&json!({ "volumes": [volume] })).await;
            let path = format!("/v1/sandboxes/{maker}");
            assert_eq!(world.call("DELETE", &path).send().await.status, 204);
        }
    }
    name
}

async fn code(call: Call) -> String {
    let mut begun = call.begin().await;
    let status = begun.response.status().as_u16();
    // A stream of events has no end.
    if status < 400 {
        return status.to_string();
    }
    let mut body = Vec::new();
    while let Some(piece) = begun.piece().await {
        body.extend_from_slice(&piece);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let code = body["code"].as_str().unwrap_or_default();
    format!("{status} {code}").trim().to_owned()
}

#[tokio::test]
async fn every_operation_is_for_whom_the_table_says() {
    let world = World::with(&Set::settings("")).await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let admin = world.new_key(&json!({"label": "admin"})).await.1;
    let soon = json!({"label": "short", "tenant": "a", "expiresAt": 1_900_000_001});
    let expired = world.new_key(&soon).await.1;
    let (id, revoked) = world
        .new_key(&json!({"label": "gone", "tenant": "a"}))
        .await;
    let path = format!("/x/keys/{id}");
    assert_eq!(world.call("DELETE", &path).send().await.status, 204);
    let end = if own.ends_with('0') { '1' } else { '0' };
    let nearly = format!("{}{end}", &own[..own.len() - 1]);
    let rows = rows();
    for (number, (route, names, body, expected)) in rows.iter().enumerate() {
        world.hand.advance(Duration::from_secs(2));
        let (method, pattern) = route.split_once(' ').unwrap();
        let mut name = match names {
            Names::Nothing => String::new(),
            Names::Sandbox => world.sandbox_of(&own).await.to_string(),
            Names::Snapshot => world.snapshot_of(&own).await,
            Names::Made(what) => make(&world, what, number).await,
        };
        let call = |name: &str| {
            let call = world.bare(method, &pattern.replacen('*', name, 1));
            match body {
                Value::Null => call,
                body => call.json(body),
            }
        };
        if !matches!(pattern, "/health" | "/version" | "/openapi.json") {
            for (key, expected) in [
                (None, "401 MISSING_API_KEY"),
                (Some("guessed-by-somebody"), "401 INVALID_API_KEY"),
                (Some(nearly.as_str()), "401 INVALID_API_KEY"),
                (Some(expired.as_str()), "401 API_KEY_EXPIRED"),
                (Some(revoked.as_str()), "401 INVALID_API_KEY"),
            ] {
                let mut call = call(&name);
                if let Some(key) = key {
                    call = call.header("open-sandbox-api-key", key);
                }
                assert_eq!(code(call).await, expected, "{route} with {key:?}");
            }
        }
        for (who, key, expected) in [
            ("another tenant", &other, expected[1]),
            ("the tenant", &own, expected[0]),
            ("an admin", &admin, expected[2]),
        ] {
            let found = code(call(&name).header("open-sandbox-api-key", key)).await;
            assert_eq!(found, expected, "{route} for {who}");
            match names {
                Names::Sandbox if who == "the tenant" => {
                    name = world.sandbox_of(&own).await.to_string();
                }
                Names::Snapshot if who == "the tenant" => {
                    name = world.snapshot_of(&own).await;
                }
                _ => {}
            }
        }
    }
    let placed: BTreeSet<String> = rows
        .iter()
        .map(|(route, ..)| {
            let route = route.replace("endpoints/80", "endpoints/*");
            route.replace("tcp/80", "tcp/*")
        })
        .collect();
    let served = barchan_server::routes().map(|(method, path)| format!("{method} {path}"));
    assert_eq!(placed, served.collect(), "each operation has one row");
}

/// What is behind the proxy is for the same.
#[tokio::test]
async fn ports_are_for_their_tenant_alone() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let (id, theirs) = (world.sandbox_of(&own).await, world.sandbox_of(&other).await);
    let token = world.token(&id).await.1;
    let foreign = world.token(&theirs).await.1;
    let signed = crate::signed::signed(&world, &id, 8080, "&form=path").await;
    let signed = format!("{}/show", &signed[signed.find('/').unwrap()..]);
    let forged = signed.replacen("/8080/", "/8081/", 1);
    let path = format!("/v1/sandboxes/{id}/proxy/8080/show");
    let daemon = format!("/v1/sandboxes/{id}/proxy/44772/show");
    let key = "open-sandbox-api-key";
    let no_access = "401 MISSING_OR_INVALID_SECURE_ACCESS";
    for (path, headers, expected) in [
        (&path, Vec::<(&str, &str)>::new(), no_access),
        (&path, vec![(key, "guess")], no_access),
        (&path, vec![(key, own.as_str())], "200"),
        (&path, vec![("x-api-key", own.as_str())], "200"),
        (&path, vec![(key, other.as_str())], GONE),
        (&daemon, vec![(key, own.as_str())], "200"),
        (&daemon, vec![(key, other.as_str())], GONE),
        (&path, vec![("x-execd-access-token", token.as_str())], "200"),
        (
            &path,
            vec![("x-execd-access-token", foreign.as_str())],
            no_access,
        ),
        (
            &path,
            vec![("opensandbox-secure-access", token.as_str())],
            "200",
        ),
        // The token alone would do.
        (
            &path,
            vec![(key, other.as_str()), ("x-execd-access-token", &token)],
            "200",
        ),
        // A wrong one is refused, whatever else is right.
        (
            &path,
            vec![("opensandbox-secure-access", "x"), (key, &own)],
            no_access,
        ),
        (&signed, vec![], "200"),
        (&signed, vec![("opensandbox-secure-access", "x")], no_access),
        (&signed, vec![("opensandbox-secure-access", &token)], "200"),
        (&signed, vec![(key, &other)], "200"),
        (&forged, vec![], "401 SIGNED_ADDRESS_INVALID"),
        (&forged, vec![(key, &other)], GONE),
    ] {
        let mut call = world.bare("GET", path);
        for (name, value) in &headers {
            call = call.header(name, value);
        }
        assert_eq!(call.send().await.code(), expected, "{path} {headers:?}");
    }
}
