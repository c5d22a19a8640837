//! Keys that are made, replaced and taken away while the server works.

use std::time::Duration;

use serde_json::{Value, json};

use crate::guest;
use crate::tenancy::parts;
use crate::world::{Call, Set, World};

const ROUTE: &str = "/v1/sandboxes";

async fn code(world: &World, key: &str) -> String {
    world.with_key(key, "GET", ROUTE).send().await.code()
}

#[tokio::test]
async fn a_key_is_shown_once_and_kept_as_a_hash() {
    let mut world = World::new().await;
    let (id, key) = world.new_key(&json!({"label": "ci"})).await;
    assert!(
        key.starts_with(&format!("barchan_{id}_")) && key.len() == 85,
        "{id}"
    );
    assert_eq!(code(&world, &key).await, "200");
    let list = world.call("GET", "/x/keys").send().await;
    let shown = list.json()["keys"][0].clone();
    assert_eq!((&shown["id"], &shown["label"]), (&json!(id), &json!("ci")));
    assert_eq!(shown["lastUsedAt"], "2030-03-17T17:46:40Z");
    let secret = key.rsplit('_').next().unwrap().to_owned();
    assert!(!list.text().contains(&secret));
    world.stop().await;
    for (path, bytes) in world.state_files() {
        let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        assert!(!has(&secret), "{}", path.display());
    }
    world.start().await.unwrap();
    assert_eq!(code(&world, &key).await, "200");
    let again = world.call("GET", "/x/keys").send().await.json();
    assert_eq!(again["keys"][0]["createdAt"], shown["createdAt"]);
}

#[tokio::test]
async fn last_uses_survive_the_server() {
    let mut world = World::new().await;
    let (_, key) = world.new_key(&json!({"label": "ci"})).await;
    world.hand.advance(Duration::from_secs(7));
    assert_eq!(code(&world, &key).await, "200");
    world.stop().await;
    world.start().await.unwrap();
    let list = world.call("GET", "/x/keys").send().await.json();
    assert_eq!(list["keys"][0]["lastUsedAt"], "2030-03-17T17:46:47Z");
}

#[tokio::test]
async fn a_rotated_key_has_its_grace_and_a_revoked_one_has_none() {
    let mut world = World::new().await;
    let (id, old) = world.new_key(&json!({"label": "ci"})).await;
    let rotate = format!("/x/keys/{id}/rotate");
    let call = world
        .call("POST", &rotate)
        .json(&json!({"graceSeconds": 60}));
    let (same, new) = parts(&call.send().await);
    assert_eq!(same, id);
    for (at_s, old_code) in [(59, "200"), (60, "401 API_KEY_EXPIRED")] {
        let left = at_s - (world.now().wall.as_second() - 1_900_000_000);
        world.hand.advance(Duration::from_secs(left.unsigned_abs()));
        assert_eq!(code(&world, &old).await, old_code, "at {at_s}");
        assert_eq!(code(&world, &new).await, "200");
    }
    let (_, newest) = parts(&world.call("POST", &rotate).send().await);
    assert_eq!(code(&world, &new).await, "401 INVALID_API_KEY");
    assert_eq!(code(&world, &newest).await, "200");
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(
        code(&world, &newest).await,
        "200",
        "kept before it was shown"
    );
    let path = format!("/x/keys/{id}");
    assert_eq!(world.call("DELETE", &path).send().await.status, 204);
    assert_eq!(code(&world, &newest).await, "401 INVALID_API_KEY");
    let again = world.call("DELETE", &path).send().await;
    assert_eq!(again.code(), "404 KEY_NOT_FOUND");
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(code(&world, &newest).await, "401 INVALID_API_KEY");
}

#[tokio::test]
async fn requests_for_keys_and_tenants_that_make_no_sense_change_nothing() {
    let world = World::new().await;
    let key = world.tenant("a", &json!({})).await;
    let keys = |world: &World| world.call("GET", "/x/keys").send();
    let before = keys(&world).await.json();
    for (method, path, body, expected) in [
        (
            "POST",
            "/x/keys",
            json!({"label": "l", "tenant": "b"}),
            "404 TENANT_NOT_FOUND",
        ),
        (
            "POST",
            "/x/keys",
            json!({"label": "l", "expiresAt": 1_900_000_000}),
            "400 SANDBOX::INVALID_PARAMETER",
        ),
        ("POST", "/x/keys", json!({}), "422"),
        (
            "POST",
            "/x/keys/0123456789ab/rotate",
            json!({}),
            "404 KEY_NOT_FOUND",
        ),
        (
            "POST",
            "/x/keys/x/rotate",
            json!({"graceSeconds": -1}),
            "422",
        ),
        (
            "POST",
            "/x/tenants",
            json!({"name": "a"}),
            "409 TENANT_ALREADY_EXISTS",
        ),
        ("POST", "/x/tenants", json!({"name": "A"}), "422"),
        ("PUT", "/x/tenants/b", json!({}), "404 TENANT_NOT_FOUND"),
        ("GET", "/x/tenants/b", Value::Null, "404 TENANT_NOT_FOUND"),
        (
            "DELETE",
            "/x/tenants/b",
            Value::Null,
            "404 TENANT_NOT_FOUND",
        ),
        ("DELETE", "/x/tenants/a", Value::Null, "409 TENANT_IN_USE"),
    ] {
        let answer = world.call(method, path).json(&body).send().await;
        assert_eq!(answer.code(), expected, "{method} {path} {body}");
    }
    assert_eq!(keys(&world).await.json(), before);
    // Without keys it has a sandbox yet.
    let id = world.sandbox_of(&key).await;
    let own = before["keys"][0]["id"].as_str().unwrap();
    let revoke = world.call("DELETE", &format!("/x/keys/{own}"));
    assert_eq!(revoke.send().await.status, 204);
    let remove = || world.call("DELETE", "/x/tenants/a").send();
    assert_eq!(remove().await.code(), "409 TENANT_IN_USE");
    let delete = world.call("DELETE", &format!("/v1/sandboxes/{id}"));
    assert_eq!(delete.send().await.status, 204);
    assert_eq!(remove().await.status, 204);
}

/// Keys of ours are judged wherever they are shown: who was revoked is not anybody.
#[tokio::test]
async fn an_open_server_and_the_socket_know_keys_too() {
    let world = World::with(&Set::settings("server.api_key = \"\"")).await;
    let key = world.tenant("a", &json!({})).await;
    let ids = world.call("GET", "/x/keys").send().await.json();
    let id = ids["keys"][0]["id"].as_str().unwrap().to_owned();
    let socket = world.unix_socket();
    let by_socket = |key: &str| {
        let call = Call::unix(&socket, "GET", "/x/keys");
        call.header("open-sandbox-api-key", key)
    };
    let by_port = |key: &str| world.with_key(key, "GET", "/x/keys");
    for (call, expected) in [
        (by_port(&key), "403 ADMIN_ONLY"),
        (by_socket(&key), "403 ADMIN_ONLY"),
        (by_port("any"), "200"),
        (by_socket("any"), "200"),
    ] {
        assert_eq!(call.send().await.code(), expected);
    }
    let revoke = Call::unix(&socket, "DELETE", &format!("/x/keys/{id}"));
    assert_eq!(revoke.send().await.status, 204);
    assert_eq!(by_port(&key).send().await.code(), "401 INVALID_API_KEY");
    assert_eq!(by_socket(&key).send().await.code(), "401 INVALID_API_KEY");
    let alias = world.bare("GET", "/x/keys").header("x-api-key", &key);
    assert_eq!(alias.send().await.code(), "401 INVALID_API_KEY");
    let alias = Call::unix(&socket, "GET", "/x/keys").header("x-api-key", &key);
    assert_eq!(alias.send().await.code(), "401 INVALID_API_KEY");
}

/// A stream ends with the key that it was opened with, and others go on.
#[tokio::test]
async fn streams_of_events_end_with_their_keys() {
    let world = World::with(&Set::settings("server.api_key = \"0123456789abcdef\"")).await;
    let settings_key = "0123456789abcdef";
    let make = |body: Value| {
        let call = world.with_key(settings_key, "POST", "/x/keys");
        async move { parts(&call.json(&body).send().await) }
    };
    let soon = json!({"label": "short", "expiresAt": 1_900_000_010});
    let (revoked, staying, expiring) = (
        make(json!({"label": "gone"})).await,
        make(json!({"label": "stays"})).await,
        make(soon).await,
    );
    let mut streams = Vec::new();
    for key in [settings_key, &revoked.1, &staying.1, &expiring.1] {
        let mut stream = world.with_key(key, "GET", "/x/events").begin().await;
        assert_eq!(stream.response.status(), 200);
        assert_eq!(&*stream.piece().await.unwrap(), b": watching\n\n");
        streams.push(stream);
    }
    let path = format!("/x/keys/{}", revoked.0);
    let revoke = world.with_key(settings_key, "DELETE", &path);
    assert_eq!(revoke.send().await.status, 204);
    assert!(streams.remove(1).piece().await.is_none());
    world.write("server.api_key = \"fedcba9876543210\"");
    let reload = Call::unix(&world.unix_socket(), "POST", "/x/reload");
    assert_eq!(reload.send().await.status, 200);
    assert!(streams.remove(0).piece().await.is_none());
    world.hand.advance(Duration::from_secs(16));
    let mut ended = streams.pop().unwrap();
    let mut last = ended.piece().await;
    while last.is_some() {
        last = ended.piece().await;
    }
    let call = world.with_key(&staying.1, "POST", ROUTE);
    call.json(&crate::world::request(&json!({}))).send().await;
    let mut told = String::new();
    while !told.contains("event: started") {
        let piece = streams[0].piece().await.unwrap();
        told.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

#[tokio::test]
async fn each_key_has_its_rate() {
    let settings = "[access]\nadmin_rate_per_s = 5\nadmin_burst = 10\ntenant_rate_per_s = 2\n\
                    tenant_burst = 4\n";
    let world = World::with(&Set::settings(settings)).await;
    let [slow, usual, admin] = [
        world.tenant("slow", &json!({})).await,
        world.tenant("usual", &json!({})).await,
        world.new_key(&json!({"label": "admin"})).await.1,
    ];
    let terms = json!({"rate": {"perSecond": 1, "burst": 2}});
    let change = world.call("PUT", "/x/tenants/slow").json(&terms);
    assert_eq!(change.send().await.status, 200);
    for _ in 0..2 {
        world.hand.advance(Duration::from_secs(60));
        for (key, burst) in [(&slow, 2), (&usual, 4), (&admin, 10), (&world.key(), 10)] {
            for number in 0..burst + 2 {
                let answer = world.with_key(key, "GET", ROUTE).send().await;
                let expected = if number < burst {
                    "200"
                } else {
                    "429 RATE_LIMITED"
                };
                assert_eq!(answer.code(), expected, "{number} of {burst}");
                assert_eq!(answer.header("retry-after") == "1", number >= burst);
            }
        }
        let by_socket = Call::unix(&world.unix_socket(), "GET", ROUTE);
        assert_eq!(by_socket.send().await.status, 200);
    }
    world.write("");
    let reload = Call::unix(&world.unix_socket(), "POST", "/x/reload");
    assert_eq!(reload.send().await.status, 200);
    assert_eq!(code(&world, &admin).await, "200", "no limit now");
    assert_eq!(code(&world, &slow).await, "429 RATE_LIMITED");
}

/// Settings that are refused change neither the key nor a rate.
#[tokio::test]
async fn refused_settings_change_no_key_and_no_rate() {
    const KEY: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";
    let world = World::with(&Set::settings("server.api_key = \"0123456789abcdef\"")).await;
    let mut stream = world.with_key(KEY, "GET", "/x/events").begin().await;
    assert_eq!(&*stream.piece().await.unwrap(), b": watching\n\n");
    let rate = "[access]\nadmin_rate_per_s = 1\nadmin_burst = 1\n";
    world.write(&format!("server.api_key = \"{OTHER}\"\n{rate}[limts]\n"));
    let reload = || Call::unix(&world.unix_socket(), "POST", "/x/reload").send();
    assert_eq!(reload().await.code(), "409 SETTINGS_UNUSABLE");
    for _ in 0..3 {
        assert_eq!(code(&world, KEY).await, "200");
    }
    assert_eq!(code(&world, OTHER).await, "401 INVALID_API_KEY");
    world.hand.advance(Duration::from_secs(16));
    assert_eq!(&*stream.piece().await.unwrap(), b": still here\n\n");
    world.write(&format!("server.api_key = \"{OTHER}\"\n{rate}"));
    assert_eq!(reload().await.status, 200);
    assert!(stream.piece().await.is_none());
    for (key, expected) in [
        (KEY, "401 INVALID_API_KEY"),
        (OTHER, "200"),
        (OTHER, "429 RATE_LIMITED"),
    ] {
        assert_eq!(code(&world, key).await, expected);
    }
}

/// The program inside never sees a key of ours.
#[tokio::test]
async fn no_key_goes_into_a_sandbox() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let key = world.tenant("a", &json!({})).await;
    let id = world.sandbox_of(&key).await;
    let path = format!("/v1/sandboxes/{id}/proxy/8080/show");
    for (name, value, is_theirs) in [
        ("x-api-key", key.as_str(), false),
        ("open-sandbox-api-key", &key, false),
        ("x-api-key", "of-the-program", true),
    ] {
        let call = world.with_key(&key, "GET", &path).and_header(name, value);
        let answer = call.send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.text().contains(&key), "{name}");
        assert_eq!(answer.text().contains(value), is_theirs, "{name}");
    }
}
