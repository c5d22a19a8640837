//! Creating sandboxes: what is answered, what is refused, and that nothing stays behind.

use barchan_runtime::{Capabilities, ErrorKind};
use barchan_wire::lifecycle::{CreatedSandbox, Sandbox, State};
use serde_json::{Value, json};

use crate::world::{Set, World, request, until};

#[tokio::test]
async fn a_create_answers_with_all_that_clients_need() {
    let world = World::new().await;
    let arch = if cfg!(target_arch = "aarch64") {
        "ARM64"
    } else {
        "amd64"
    };
    let changes = json!({
        "metadata": {"team": "a"},
        "env": {"TOKEN": "hunter2"},
        "extensions": {"opensandbox.extensions.x": "y", "dropped": "z"},
        "platform": {"os": "Linux", "arch": arch},
    });
    let answer = world.create(&changes).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert!(!answer.text().contains("hunter2") && !answer.text().contains(":null"));
    assert_eq!(answer.header("content-type"), "application/json");
    let created: CreatedSandbox = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(created.status.state, State::Running);
    assert_eq!(created.entrypoint, ["tail", "-f", "/dev/null"]);
    let expires = created.expires_at.unwrap().as_micros() - created.created_at.as_micros();
    assert_eq!(expires, 600_000_000);
    assert_eq!(created.extensions.unwrap().len(), 1);
    let shown = world.get(&created.id).await;
    let shown: Sandbox = serde_json::from_value(shown.json()).unwrap();
    assert_eq!(shown.image.unwrap().uri, "host");
    assert_eq!(shown.metadata.unwrap()["team"], "a");
    assert_eq!(shown.platform.unwrap().os, "linux");
    let plan = world.fake.plans().remove(0);
    assert_eq!(plan.env["TOKEN"], "hunter2");
    assert_eq!(plan.env["OPENSANDBOX_ID"], created.id.as_str());
    assert_eq!(plan.limits.pids, Some(4096));
}

/// D12: the environment goes to the sandbox, and nowhere else.
#[tokio::test]
async fn environment_values_are_not_kept() {
    let mut world = World::new().await;
    let changes = json!({"env": {"TOKEN": "hunter2"}, "metadata": {"mark": "kept-on-disk"}});
    world.sandbox_with(&changes).await;
    world.stop().await;
    let mut found = false;
    for (_, bytes) in world.state_files() {
        let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        found |= has("kept-on-disk");
        assert!(!has("hunter2"));
    }
    assert!(found, "the record is looked for in the wrong place");
}

#[tokio::test]
async fn a_sandbox_without_a_timeout_never_expires() {
    let world = World::new().await;
    let answer = world.create(&json!({"timeout": null})).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json().get("expiresAt"), None);
}

#[tokio::test]
async fn malformed_requests_are_422_whatever_is_wrong() {
    let world = World::new().await;
    let json_type = "application/json";
    let valid = request(&json!({})).to_string();
    for (kind, body, expected) in [
        (json_type, "{".to_owned(), "json_invalid"),
        (json_type, "{\"timeout\": NaN}".to_owned(), "json_invalid"),
        (json_type, "\u{feff}{}".to_owned(), "json_invalid"),
        (json_type, "[".repeat(100_000), "json_invalid"),
        (json_type, String::new(), "missing"),
        (json_type, "[]".to_owned(), "model_attributes_type"),
        ("text/plain", valid.clone(), "model_attributes_type"),
        (
            json_type,
            request(&json!({"timeout": 60.5})).to_string(),
            "int_from_float",
        ),
        (
            json_type,
            request(&json!({"timeout": 59})).to_string(),
            "greater_than_equal",
        ),
        (
            json_type,
            request(&json!({"entrypoint": []})).to_string(),
            "too_short",
        ),
        (
            json_type,
            request(&json!({"image": null})).to_string(),
            "value_error",
        ),
    ] {
        let call = world
            .call("POST", "/v1/sandboxes")
            .header("content-type", kind);
        let answer = call.body(body.clone()).send().await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!(answer.status, 422, "{shown}: {answer:?}");
        let fault = &answer.json()["detail"][0];
        assert_eq!(fault["type"], expected, "{shown}");
        assert!(
            fault["loc"].is_array() && fault["msg"].is_string(),
            "{fault}"
        );
        assert!(fault.get("input").is_some() && !answer.header("x-request-id").is_empty());
    }
    for (kind, expected) in [
        ("application/vnd.x+json; a=b", 202),
        ("Application/JSON", 202),
    ] {
        let call = world
            .call("POST", "/v1/sandboxes")
            .header("content-type", kind);
        assert_eq!(
            call.body(valid.clone()).send().await.status,
            expected,
            "{kind}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_explained_and_leaves_nothing() {
    let world = World::new().await;
    for (kind, expected) in [
        (ErrorKind::StartFailed, "500 DOCKER::SANDBOX_START_FAILED"),
        (ErrorKind::Internal, "500 DOCKER::SANDBOX_START_FAILED"),
        (ErrorKind::Unavailable, "500 DOCKER::INITIALIZATION_ERROR"),
        (ErrorKind::Unsupported, "400 SANDBOX::INVALID_PARAMETER"),
    ] {
        world.fake.fail("create", kind, 1);
        let answer = world.create(&json!({})).await;
        assert_eq!(answer.code(), expected, "{answer:?}");
    }
    let unknown = world
        .create(&json!({"image": {"uri": "no/such:image"}}))
        .await;
    assert_eq!(unknown.code(), "500 DOCKER::SANDBOX_IMAGE_PULL_FAILED");
    let message = unknown.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("no/such:image") && message.contains("image build"),
        "{message}"
    );
    let absurd = world
        .create(&json!({"resourceLimits": {"cpu": "abc"}}))
        .await;
    assert_eq!(absurd.code(), "400 SANDBOX::INVALID_PARAMETER");
    let list = world.call("GET", "/v1/sandboxes").send().await.json();
    assert_eq!(list["items"], json!([]));
    assert_eq!(list["pagination"]["totalPages"], 0);
    assert!(world.fake.plans().is_empty());
}

#[tokio::test]
async fn what_is_not_enforced_is_told_unless_it_is_refused() {
    let weak = Capabilities {
        runtime: "fake".into(),
        limit_cpu: true,
        pause: true,
        ..Capabilities::default()
    };
    let settings = "[limits]\nstrict = false\n";
    let set = Set {
        settings,
        capabilities: Some(weak.clone()),
        ..Set::default()
    };
    let loose = World::with(&set).await;
    let answer = loose.create(&json!({})).await;
    assert_eq!(
        answer.json()["extensions"]["barchan.unenforced"],
        "memory,pids,disk"
    );
    let set = Set {
        settings: "[limits]\nstrict = true\n",
        capabilities: Some(weak),
        ..Set::default()
    };
    let strict = World::with(&set).await;
    let answer = strict.create(&json!({})).await;
    assert_eq!(answer.code(), "400 SANDBOX::INVALID_PARAMETER");
    assert!(answer.text().contains("limits.strict"), "{answer:?}");
}

#[tokio::test]
async fn a_full_server_says_when_to_come_back() {
    let world = World::with(&Set::settings("[limits]\nsandboxes_max = 2\n")).await;
    let first = world.sandbox().await;
    world.sandbox().await;
    let answer = world.create(&json!({})).await;
    assert_eq!(answer.code(), "429 SANDBOX::LIMIT_REACHED");
    assert_eq!(answer.header("retry-after"), "1");
    world
        .call("DELETE", &format!("/sandboxes/{first}"))
        .send()
        .await;
    world.sandbox().await;
}

#[tokio::test]
async fn a_create_whose_caller_went_away_leaves_nothing() {
    let world = World::new().await;
    world.fake.let_creates_through(false);
    let body = request(&json!({"timeout": null}));
    let call = world.call("POST", "/v1/sandboxes").json(&body);
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(200), call.try_send());
    assert!(given_up.await.is_err());
    let pending = world
        .call("GET", "/v1/sandboxes?state=pending")
        .send()
        .await
        .json();
    assert_eq!(
        pending["pagination"]["totalItems"], 1,
        "it is known while it is made"
    );
    world.fake.let_creates_through(true);
    until("the sandbox to be removed", async || {
        let list = world.call("GET", "/v1/sandboxes").send().await.json();
        list["items"] == json!([]) && world.fake.plans().is_empty()
    })
    .await;
}

#[tokio::test]
async fn lists_are_filtered_paged_and_youngest_first() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let label = if number % 2 == 0 { "even" } else { "odd" };
        let changes = json!({"metadata": {"kind": label, "blank": ""}});
        ids.push(world.sandbox_with(&changes).await);
        world.hand.advance(std::time::Duration::from_millis(1));
    }
    let paused = format!("/v1/sandboxes/{}/pause", ids[0]);
    assert_eq!(world.call("POST", &paused).send().await.status, 202);
    for (query, expected) in [
        ("", vec![4, 3, 2, 1, 0]),
        ("?pageSize=2", vec![4, 3]),
        ("?pageSize=2&page=3", vec![0]),
        ("?page=9", vec![]),
        ("?state=PAUSED", vec![0]),
        ("?state=paused&state=running", vec![4, 3, 2, 1, 0]),
        ("?state=", vec![]),
        ("?state=nonsense", vec![]),
        ("?metadata=kind%3Deven", vec![4, 2, 0]),
        ("?metadata=kind%3Deven%26blank%3D", vec![4, 2, 0]),
        ("?metadata=kind%3Deve", vec![]),
        ("?metadata=kind%3Deven&state=running", vec![4, 2]),
    ] {
        let answer = world
            .call("GET", &format!("/sandboxes{query}"))
            .send()
            .await;
        assert_eq!(answer.status, 200, "{query}");
        let items = answer.json()["items"].clone();
        let found: Vec<&str> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        let expected: Vec<&str> = expected
            .into_iter()
            .map(|at: usize| ids[at].as_str())
            .collect();
        assert_eq!(found, expected, "{query}");
    }
    let page = world
        .call("GET", "/sandboxes?pageSize=2&page=2")
        .send()
        .await
        .json();
    let expected =
        json!({"page": 2, "pageSize": 2, "totalItems": 5, "totalPages": 3, "hasNextPage": true});
    assert_eq!(page["pagination"], expected);
    for (query, expected) in [
        ("?page=0", "422"),
        ("?pageSize=201", "422"),
        ("?metadata=a", "400 INVALID_METADATA_FORMAT"),
    ] {
        let answer = world
            .call("GET", &format!("/sandboxes{query}"))
            .send()
            .await;
        assert_eq!(answer.code(), expected, "{query}");
    }
}

#[tokio::test]
async fn large_and_slow_bodies_are_cut_off() {
    let world = World::with(&Set::settings("[server]\nbody_wait_s = 1\n")).await;
    let large = world
        .call("POST", "/v1/sandboxes")
        .header("content-type", "application/json");
    let large = large.body(vec![b' '; 9 * 1024 * 1024]).send().await;
    assert_eq!(large.code(), "413 BODY_TOO_LARGE");
    let unannounced = world
        .call("POST", "/v1/sandboxes")
        .header("content-type", "application/json");
    let spaces = std::iter::repeat_with(|| Ok(hyper::body::Frame::data(vec![b' '; 65_536].into())));
    let endless = http_body_util::StreamBody::new(futures::stream::iter(spaces));
    // Whoever never stops writing may miss the answer; the server must live either way.
    if let Ok(answer) = unannounced.stream_body(endless).try_send().await {
        assert_eq!(answer.code(), "413 BODY_TOO_LARGE");
    }
    let stuck = http_body_util::StreamBody::new(futures::stream::pending());
    let slow = world
        .call("POST", "/v1/sandboxes")
        .header("content-type", "application/json");
    let slow = slow.stream_body(stuck).send().await;
    assert_eq!(slow.code(), "408 BODY_TIMEOUT");
    world.sandbox().await;
}

#[tokio::test]
async fn client_reports_are_taken_and_checked() {
    let world = World::new().await;
    let event =
        |ms: Value| json!({"eventType": "sandbox.create", "createDurationMs": ms, "success": true});
    for (path, body, expected) in [
        ("/v1/metrics/events", event(json!(12)), 204),
        ("/v1/metrics/events", event(json!(12.5)), 422),
        ("/v1/metrics/events", json!({}), 422),
        ("/metrics/events", event(json!(12)), 404),
    ] {
        let answer = world.call("POST", path).json(&body).send().await;
        assert_eq!(answer.status, expected, "{path} {body}");
    }
}
