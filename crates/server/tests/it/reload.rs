//! Settings that are read again while the server works.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::world::{Answer, Call, Set, World, request, until};

const KEY: &str = "the-first-key-of-all";
const OTHER_KEY: &str = "quite-another-key-now";

async fn reload(world: &World) -> Answer {
    Call::unix(&world.unix_socket(), "POST", "/x/reload")
        .send()
        .await
}

fn list(report: &Value, name: &str) -> Vec<String> {
    serde_json::from_value(report[name].clone()).unwrap()
}

#[tokio::test]
async fn what_can_change_changes_at_once_and_the_rest_is_named() {
    let world = World::with(&Set::settings("")).await;
    let first = world.sandbox().await;
    world.write(
        "[server]\nmax_sandbox_timeout_seconds = 300\nconnections_max = 7\n\
         allowed_hosts = [\"a.b\"]\n[limits]\nsandboxes_max = 1\n[limits.max]\nmemory = \"1Gi\"\n\
         [store]\nended_retention_s = 1\n",
    );
    let before = world.bare("GET", "/version").header("host", "a.b");
    assert_eq!(before.send().await.code(), "403 HOST_NOT_ALLOWED");
    let answer = reload(&world).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let report = answer.json();
    assert_eq!(report["revision"], 1);
    let changed = [
        "server.allowed_hosts",
        "server.max_sandbox_timeout_seconds",
        "store.ended_retention_s",
        "limits.sandboxes_max",
        "limits.max.memory",
    ];
    assert_eq!(list(&report, "changed"), changed);
    assert_eq!(list(&report, "needsRestart"), ["server.connections_max"]);
    let after = world.bare("GET", "/version").header("host", "a.b");
    assert_eq!(after.send().await.status, 200);
    for (changes, expected) in [
        (json!({"timeout": 600}), "300 seconds at most"),
        (json!({"timeout": 60}), "over this server's maximum"),
        (
            json!({"timeout": 60, "resourceLimits": {"memory": "1Gi"}}),
            "holds 1",
        ),
    ] {
        let answer = world.create(&changes).await;
        assert!(
            answer.status >= 400 && answer.text().contains(expected),
            "{answer:?}"
        );
    }
    assert_eq!(world.state(&first).await, "Running");
    world.write("");
    let report = reload(&world).await.json();
    assert_eq!(list(&report, "changed"), changed);
    world.sandbox().await;
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told() {
    let world = World::new().await;
    world.write("[server]\nmax_sandbox_timeout_seconds = 60\napi_key = 5\n[limts]\n");
    for _ in 0..2 {
        let answer = reload(&world).await;
        assert_eq!(answer.code(), "409 SETTINGS_UNUSABLE");
        for told in [
            "text:3: server.api_key",
            "text:4: there is no setting `limts`",
        ] {
            assert!(answer.text().contains(told), "{answer:?}");
        }
    }
    world.sandbox().await;
    world.write("");
    assert_eq!(reload(&world).await.json()["revision"], 1);
}

#[tokio::test]
async fn reloading_needs_the_key_and_can_be_switched_off() {
    let world = World::new().await;
    let answer = world.bare("POST", "/x/reload").send().await;
    assert_eq!(answer.code(), "401 MISSING_API_KEY");
    assert_eq!(world.call("POST", "/x/reload").send().await.status, 200);
    world.write("[features]\nreload = false\n");
    assert_eq!(reload(&world).await.status, 200);
    let answer = reload(&world).await;
    assert_eq!(answer.code(), "403 FEATURE_DISABLED");
    assert!(answer.text().contains("features.reload"), "{answer:?}");
}

#[tokio::test]
async fn each_feature_is_off_when_it_is_switched_off() {
    let world = World::new().await;
    let id = world.sandbox().await;
    for (flag, method, path) in [
        ("events", "GET", "/x/events".to_owned()),
        ("own_api", "GET", "/x/events".to_owned()),
        ("own_api", "GET", format!("/x/sandboxes/{id}")),
        ("own_api", "POST", "/x/reload".to_owned()),
        ("own_api", "GET", "/x/keys".to_owned()),
        ("own_api", "GET", "/x/tenants".to_owned()),
        ("own_api", "GET", "/x/volumes".to_owned()),
        ("pools", "GET", "/v1/pools".to_owned()),
        ("pause", "POST", format!("/v1/sandboxes/{id}/pause")),
        ("pause", "POST", format!("/v1/sandboxes/{id}/resume")),
        (
            "logs",
            "GET",
            format!("/v1/sandboxes/{id}/diagnostics/logs"),
        ),
        (
            "service_ports",
            "GET",
            format!("/v1/sandboxes/{id}/endpoints/80"),
        ),
        (
            "service_ports",
            "GET",
            format!("/v1/sandboxes/{id}/proxy/80/"),
        ),
        ("service_ports", "GET", format!("/x/sandboxes/{id}/tcp/80")),
        ("own_api", "GET", format!("/x/sandboxes/{id}/tcp/80")),
    ] {
        let off = World::with(&Set::settings(match flag {
            "events" => "features.events = false",
            "own_api" => "features.own_api = false",
            "pause" => "features.pause = false",
            "pools" => "features.pools = false",
            "logs" => "features.logs = false",
            _ => "features.service_ports = false",
        }))
        .await;
        let on = world.call(method, &path).begin().await;
        let status = on.response.status().as_u16();
        assert!(!matches!(status, 403 | 404), "{method} {path}: {status}");
        let answer = off.call(method, &path).send().await;
        assert_eq!(
            answer.code(),
            "403 FEATURE_DISABLED",
            "{flag}: {method} {path}"
        );
        assert!(
            answer.text().contains(&format!("features.{flag}")),
            "{answer:?}"
        );
        let daemon = off.sandbox().await;
        let ping = off.inside(&daemon, 44772, "GET", "/ping").await;
        assert_eq!(ping.send().await.status, 200, "{flag}");
    }
}

#[tokio::test]
async fn another_key_replaces_the_old_one() {
    let world = World::new().await;
    let with = |key: &str| {
        let call = world.bare("GET", "/v1/sandboxes");
        call.header("open-sandbox-api-key", key).send()
    };
    let made = world.key();
    assert_eq!(with(&made).await.status, 200);
    world.write(&format!("server.api_key = \"{KEY}\""));
    let answer = reload(&world).await;
    assert_eq!(list(&answer.json(), "changed"), ["server.api_key"]);
    assert!(!answer.text().contains(KEY));
    assert_eq!(with(&made).await.status, 401);
    assert_eq!(with(KEY).await.status, 200);
    world.write("");
    reload(&world).await;
    assert_eq!(with(&made).await.status, 200);
    assert_eq!(with(KEY).await.status, 401);
}

#[tokio::test]
async fn creates_get_nothing_that_is_switched_off() {
    let hooks = json!({"lifecycle": {"preStart": {"command": ["true"]}}});
    let pooled = json!({"extensions": {"poolRef": "*"}, "image": null, "resourceLimits": null});
    for (settings, changes, expected) in [
        ("", &hooks, "202"),
        ("features.hooks = false", &hooks, "403 FEATURE_DISABLED"),
        ("features.hooks = false", &json!({"lifecycle": {}}), "202"),
        ("features.hooks = false", &json!({}), "202"),
        ("features.pools = false", &pooled, "403 FEATURE_DISABLED"),
        ("features.pools = false", &json!({}), "202"),
    ] {
        let world = World::with(&Set::settings(settings)).await;
        assert_eq!(world.create(changes).await.code(), expected, "{changes}");
    }
}

/// Each half of the settings is told by another part of the server: the key by the gate, the
/// longest time to live by admission, and the number of sandboxes by the lifecycle. A request that
/// passes the gate with one key must meet the limits that came with that key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_meets_half_of_a_change() {
    let settings = |key: &str, seconds: u64, sandboxes: u64| {
        format!(
            "[server]\napi_key = \"{key}\"\nmax_sandbox_timeout_seconds = {seconds}\n\
             [limits]\nsandboxes_max = {sandboxes}\n"
        )
    };
    let world = World::new().await;
    world.sandbox().await;
    let sides = [(KEY, 100, 1), (OTHER_KEY, 1000, 0)];
    let texts = sides.map(|(key, seconds, sandboxes)| settings(key, seconds, sandboxes));
    world.write(&texts[0]);
    assert_eq!(reload(&world).await.status, 200);
    let done = AtomicBool::new(false);
    let turning = async {
        for turn in 1..=200 {
            world.write(&texts[turn % 2]);
            assert_eq!(reload(&world).await.status, 200);
        }
        done.store(true, Ordering::Relaxed);
    };
    let asking = async |key: &str, seconds: u64, sandboxes: u64| {
        let (mut long, mut full) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            for (timeout, expected) in [
                (5000, format!("{seconds} seconds at most")),
                (60, format!("holds {sandboxes}")),
            ] {
                let call = world.bare("POST", "/v1/sandboxes");
                let call = call.header("open-sandbox-api-key", key);
                let body = request(&json!({"timeout": timeout}));
                let answer = call.json(&body).send().await;
                if !matches!(answer.status, 401 | 429) || answer.text().contains(&expected) {
                    assert!(answer.text().contains(&expected), "{key}: {answer:?}");
                    long += u32::from(timeout == 5000);
                    full += u32::from(timeout == 60);
                } else {
                    let code = answer.code();
                    let is_stranger = code.contains("API_KEY") || code.contains("FAILURES");
                    assert!(is_stranger, "{key}: {answer:?}");
                }
            }
        }
        (long, full)
    };
    let askers = sides.iter().cycle().take(6);
    let askers = askers.map(|(key, seconds, sandboxes)| asking(key, *seconds, *sandboxes));
    let (counts, ()) = futures::join!(join_all(askers), turning);
    for (long, full) in counts {
        assert!(
            long > 0 && full > 0,
            "an asker never came through: {long} {full}"
        );
    }
}

#[tokio::test]
async fn an_idle_server_leaves_as_the_settings_of_now_say() {
    let mut world = World::with(&Set::settings("")).await;
    world.write("[server]\nidle_exit_s = 5\n");
    assert_eq!(reload(&world).await.status, 200);
    let address = world.address();
    until("the server leaves", async || {
        world.hand.advance(std::time::Duration::from_secs(6));
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
    world.stopped().await;
}
