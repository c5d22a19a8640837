//! `GET /metrics`: who may read it, what it says, that it can be read.

use std::collections::{BTreeMap, BTreeSet};

use barchan_runtime::{EndReason, ErrorKind};
use serde_json::json;

use crate::guest::echo;
use crate::world::{Answer, Call, Set, World, until};

/// Samples by name and labels, after a strict reading of the format.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut samples = BTreeMap::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name) && !help.is_empty(), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name, kind).is_none(), "{line} twice");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            let family = name.strip_suffix(end)?;
            (kinds.get(family) == Some(&"histogram")).then_some(family)
        });
        let family = family.unwrap_or(name);
        assert!(
            kinds.contains_key(family) && helped.contains(family),
            "{line}"
        );
        assert!(
            name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'),
            "{line}"
        );
        if let Some(labels) = series.strip_prefix(name).filter(|it| !it.is_empty()) {
            let labels = labels.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            for label in labels.split("\",") {
                let (key, value) = label.split_once("=\"").unwrap();
                let plain = |it: u8| it.is_ascii_alphanumeric() || b"_.+-".contains(&it);
                let value = value.trim_end_matches('"');
                assert!(key.bytes().all(plain) && value.bytes().all(plain), "{line}");
            }
        }
        let value: f64 = value.parse().unwrap();
        assert!(
            samples.insert(series.to_owned(), value).is_none(),
            "{line} twice"
        );
    }
    samples
}

async fn read(world: &World) -> BTreeMap<String, f64> {
    let answer = world.call("GET", "/metrics").send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("content-type"), kind);
    parse(answer.text())
}

/// What happens below, and by how much more each is.
const COUNTED: [(&str, f64); 18] = [
    (
        "barchan_sandbox_creates_total{asked_by=\"caller\",result=\"ok\"}",
        3.0,
    ),
    (
        "barchan_sandbox_creates_total{asked_by=\"caller\",result=\"runtime\"}",
        1.0,
    ),
    ("barchan_sandbox_create_seconds_count", 3.0),
    (
        "barchan_sandbox_create_phase_seconds_count{phase=\"record\"}",
        4.0,
    ),
    (
        "barchan_sandbox_create_phase_seconds_count{phase=\"runtime\"}",
        4.0,
    ),
    (
        "barchan_sandbox_create_phase_seconds_count{phase=\"settle\"}",
        3.0,
    ),
    (
        "barchan_sandbox_ends_total{cause=\"killed\",result=\"success\"}",
        1.0,
    ),
    (
        "barchan_sandbox_ends_total{cause=\"oom\",result=\"failure\"}",
        1.0,
    ),
    (
        "barchan_sandbox_ends_total{cause=\"create_failed\",result=\"failure\"}",
        0.0,
    ),
    (
        "barchan_requests_total{operation=\"create\",status=\"2xx\"}",
        3.0,
    ),
    (
        "barchan_requests_total{operation=\"create\",status=\"5xx\"}",
        1.0,
    ),
    (
        "barchan_requests_total{operation=\"create_event\",status=\"2xx\"}",
        1.0,
    ),
    ("barchan_request_seconds_count{operation=\"create\"}", 4.0),
    ("barchan_sandboxes{state=\"Paused\"}", 1.0),
    ("barchan_sandboxes{state=\"Failed\"}", 1.0),
    ("barchan_sandboxes{state=\"Running\"}", 0.0),
    ("barchan_client_creates_total{result=\"ok\"}", 1.0),
    ("barchan_client_create_seconds_sum", 0.007),
];

#[tokio::test]
async fn what_happens_is_counted() {
    let (guest, _) = echo();
    let world = World::with(&Set::guest(guest)).await;
    let before = read(&world).await;
    let kept = world.sandbox().await;
    let killed = world.sandbox().await;
    let starved = world.sandbox().await;
    world
        .call("DELETE", &format!("/v1/sandboxes/{killed}"))
        .send()
        .await;
    world.fake.end(&starved, EndReason::Oom);
    world.await_state(&starved, "Failed").await;
    world.fake.fail("create", ErrorKind::StartFailed, 1);
    assert_eq!(world.create(&json!({})).await.status, 500);
    world
        .call("POST", &format!("/v1/sandboxes/{kept}/pause"))
        .send()
        .await;
    let told = world.call("POST", "/v1/metrics/events");
    let event = json!({"eventType": "sandbox.create", "createDurationMs": 7, "success": true});
    assert_eq!(told.json(&event).send().await.status, 204);
    let after = read(&world).await;
    for (series, more) in COUNTED {
        let change = after[series] - before[series];
        assert!((change - more).abs() < 1e-9, "{series} changed by {change}");
    }
    assert!(after["barchan_store_write_seconds_count"] > 3.0);
    assert!(after["process_resident_memory_bytes"] > 1e6 && after["process_open_fds"] > 3.0);
    let build = after
        .keys()
        .find(|it| it.starts_with("barchan_build_info"))
        .unwrap();
    assert!(build.contains("runtime=\"fake\""), "{build}");
}

#[tokio::test]
async fn streams_through_the_proxy_are_counted_while_they_are_open() {
    let (guest, _) = echo();
    let world = World::with(&Set::guest(guest)).await;
    let id = world.sandbox().await;
    let (inwards, out) = (
        "barchan_proxy_bytes_total{direction=\"in\"}",
        "barchan_proxy_bytes_total{direction=\"out\"}",
    );
    let before = read(&world).await;
    let back = world.inside(&id, 8080, "POST", "/back").await;
    assert_eq!(
        back.body(vec![b'x'; 100_000]).send().await.body.len(),
        100_000
    );
    let after = read(&world).await;
    assert!(
        (after[inwards] - before[inwards] - 1e5).abs() < 0.5,
        "{after:?}"
    );
    assert!((after[out] - before[out] - 1e5).abs() < 0.5, "{after:?}");
    let mut drip = world.inside(&id, 8080, "GET", "/drip").await.begin().await;
    drip.piece().await.unwrap();
    assert!((read(&world).await["barchan_proxy_streams"] - 1.0).abs() < 0.5);
    drop(drip);
    let watcher = world.call("GET", "/x/events").begin().await;
    let is_over = async || {
        let now = read(&world).await;
        now["barchan_proxy_streams"] < 0.5 && now["barchan_event_watchers"] > 0.5
    };
    until("the stream is over and the watcher is seen", is_over).await;
    drop(watcher);
    until("the watcher is gone", async || {
        read(&world).await["barchan_event_watchers"] < 0.5
    })
    .await;
}

#[tokio::test]
async fn pools_and_volumes_are_counted_without_their_names() {
    let world = World::new().await;
    let volumes = json!([
        {"name": "of-a-caller", "pvc": {"claimName": "of-a-caller"}, "mountPath": "/data"}
    ]);
    let id = world.sandbox_with(&json!({"volumes": volumes})).await;
    let container = json!({"image": "host", "command": ["sleep", "inf"]});
    let pool = json!({
        "name": "of-a-caller", "template": {"spec": {"containers": [container]}},
        "capacitySpec": {"bufferMax": 2, "bufferMin": 2, "poolMax": 2, "poolMin": 2},
    });
    let made = world.call("POST", "/v1/pools").json(&pool).send().await;
    assert_eq!(made.status, 201, "{made:?}");
    until("the pool is filled", async || {
        read(&world).await["barchan_pool_sandboxes{state=\"ready\"}"] > 1.5
    })
    .await;
    let text = world.call("GET", "/metrics").send().await;
    let now = parse(text.text());
    for (series, expected) in [
        ("barchan_pools", 1.0),
        ("barchan_pool_sandboxes{state=\"in_use\"}", 0.0),
        ("barchan_volumes{state=\"mounted\"}", 1.0),
        (
            "barchan_sandbox_creates_total{asked_by=\"pool\",result=\"ok\"}",
            2.0,
        ),
        ("barchan_sandboxes{state=\"Running\"}", 1.0),
    ] {
        assert!(
            (now[series] - expected).abs() < 0.5,
            "{series} is {}",
            now[series]
        );
    }
    for word in ["of-a-caller", id.as_str(), "\"host\""] {
        assert!(!text.text().contains(word), "{word} in {}", text.text());
    }
}

#[tokio::test]
async fn strangers_add_no_series() {
    let world = World::new().await;
    let before: Vec<String> = read(&world).await.into_keys().collect();
    for number in 0..50 {
        let path = format!("/no/route-{number}");
        world.call("GET", &path).send().await;
        world
            .bare(&format!("METHOD{number}"), "/v1/sandboxes")
            .send()
            .await;
        world
            .bare("GET", &format!("/v1/sandboxes/x{number}/proxy/{number}/"))
            .send()
            .await;
    }
    let after: Vec<String> = read(&world).await.into_keys().collect();
    assert_eq!(before, after);
}

#[tokio::test]
async fn the_setting_says_who_may_read() {
    let code = |answer: Answer| answer.code();
    for (settings, bare, with_key) in [
        ("", "401 MISSING_API_KEY", "200"),
        ("[observe]\nmetrics = \"key\"", "401 MISSING_API_KEY", "200"),
        ("[observe]\nmetrics = \"open\"", "200", "200"),
        (
            "[observe]\nmetrics = \"off\"",
            "401 MISSING_API_KEY",
            "403 FEATURE_DISABLED",
        ),
        ("[server]\napi_key = \"\"", "200", "200"),
    ] {
        let world = World::with(&Set::settings(settings)).await;
        assert_eq!(
            code(world.bare("GET", "/metrics").send().await),
            bare,
            "{settings}"
        );
        assert_eq!(
            code(world.call("GET", "/metrics").send().await),
            with_key,
            "{settings}"
        );
        let local = Call::unix(&world.unix_socket(), "GET", "/metrics")
            .send()
            .await;
        assert_eq!(code(local), with_key, "{settings}");
        assert_eq!(
            code(world.call("GET", "/v1/metrics").send().await),
            "404 NOT_FOUND"
        );
        let foreign = world.bare("GET", "/metrics").header("host", "evil.example");
        assert_eq!(
            code(foreign.send().await),
            "403 HOST_NOT_ALLOWED",
            "{settings}"
        );
    }
}
