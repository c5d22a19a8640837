//! What went wrong in other servers, about lives and ways in.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::guest;
use crate::world::{Call, Set, World};

/// B110: what is secret in a create goes into the sandbox, and into no answer and no file.
#[tokio::test]
async fn no_answer_and_no_file_shows_what_a_create_kept_secret() {
    const SECRETS: [&str; 3] = ["hunter2", "s3cret-of-a-registry", "Bearer-of-news"];
    let mut world = World::with(&Set::guest(guest::echo().0)).await;
    let secret = json!({
        "image": {"uri": "host", "auth": {"username": "u", "password": SECRETS[1]}},
        "env": {"TOKEN": SECRETS[0], "AUTHORIZATION": SECRETS[2]},
    });
    let made = world.create(&secret).await;
    assert_eq!(made.status, 202, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let snap = world.call("POST", &format!("/v1/sandboxes/{id}/snapshots"));
    let mut answers = vec![made, snap.send().await];
    for path in [
        "",
        "/diagnostics/logs",
        "/diagnostics/events?scope=all",
        "/diagnostics/inspect",
        "/diagnostics/summary",
        "/endpoints/44772",
    ] {
        let call = world.call("GET", &format!("/v1/sandboxes/{id}{path}"));
        answers.push(call.send().await);
    }
    let labels = world.call("PATCH", &format!("/v1/sandboxes/{id}/metadata"));
    answers.push(labels.json(&json!({"a": "b"})).send().await);
    for path in [
        "/v1/sandboxes",
        "/v1/snapshots",
        &format!("/x/sandboxes/{id}"),
        "/metrics",
    ] {
        answers.push(world.call("GET", path).send().await);
    }
    let mut wrong = secret.clone();
    wrong["timeout"] = json!("soon");
    let refused = world.create(&wrong).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    answers.push(refused);
    for answer in &answers {
        let shown = SECRETS.iter().find(|it| answer.text().contains(**it));
        assert!(
            shown.is_none() && answer.status < 500,
            "{shown:?}: {answer:?}"
        );
    }
    world.stop().await;
    for (path, bytes) in world.state_files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!SECRETS.iter().any(|it| text.contains(it)), "{path:?}");
    }
}

/// B092: of many creates at once each has a place of its own, and all are reached.
#[tokio::test]
async fn many_creates_at_once_have_places_of_their_own() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let creates = (0..50).map(|_| world.sandbox());
    let ids = futures::future::join_all(creates).await;
    let names: BTreeSet<&str> = ids.iter().map(|id| id.as_str()).collect();
    assert_eq!(names.len(), ids.len());
    let mut places = BTreeSet::new();
    for id in &ids {
        let path = format!("/v1/sandboxes/{id}/endpoints/8080");
        let found = world.call("GET", &path).send().await.json();
        places.insert(found["endpoint"].as_str().unwrap().to_owned());
        let shown = world.inside(id, 8080, "GET", "/show").await.send().await;
        assert_eq!(shown.status, 200, "{shown:?}");
    }
    assert_eq!(places.len(), ids.len());
}

/// B107: an endpoint names the host by which its caller came, whatever else the request says, and
/// can be called as it stands.
#[tokio::test]
async fn an_endpoint_leads_back_the_way_its_caller_came() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await;
    let (name, token) = world.token(&id).await;
    let port = world.address().port();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        "localhost".to_owned(),
    ] {
        let path = format!("/v1/sandboxes/{id}/endpoints/8080");
        let call = world.call("GET", &path).header("host", &host);
        let call = call.header("x-forwarded-host", "elsewhere.example");
        let call = call.header("forwarded", "host=elsewhere.example");
        let found = call.send().await.json()["endpoint"].clone();
        let expected = format!("{host}/v1/sandboxes/{id}/proxy/8080");
        assert_eq!(found, expected.as_str());
        let inside = format!("/{}/show", expected.split_once('/').unwrap().1);
        let call = world.bare("GET", &inside).header("host", &host);
        assert_eq!(call.header(&name, &token).send().await.status, 200);
    }
    let path = format!("/v1/sandboxes/{id}/endpoints/8080");
    let by_socket = Call::unix(&world.unix_socket(), "GET", &path).send().await;
    assert_eq!(by_socket.status, 200, "{by_socket:?}");
}

/// Only a GET asks for a WebSocket, in any spelling. Of another request's wish for another protocol
/// nothing reaches the program, and it is answered as any.
#[tokio::test]
async fn a_wish_for_another_protocol_on_a_plain_request_goes_no_further() {
    let world = World::with(&Set::guest(guest::echo().0)).await;
    let id = world.sandbox().await;
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for (connection, upgrade) in [
            ("Upgrade", "websocket"),
            ("upgrade", "WebSocket"),
            ("keep-alive, UPGRADE", "WEBSOCKET"),
        ] {
            let call = world.inside(&id, 8080, method, "/show").await;
            let call = call.header("connection", connection);
            let shown = call.header("upgrade", upgrade).send().await;
            assert_eq!(shown.status, 200, "{method} {upgrade}: {shown:?}");
            let text = shown.text().to_ascii_lowercase();
            assert!(!text.contains("websocket"), "{method} {upgrade}: {text}");
        }
    }
}

/// B088: whoever was killed right after a create leaves nothing beyond the time that it asked for,
/// also when the program in the sandbox has ended long before.
#[tokio::test]
async fn what_nobody_comes_back_for_goes_at_its_time() {
    let world = World::new().await;
    let left = world.sandbox_with(&json!({"timeout": 60})).await;
    let changes = json!({"timeout": 60, "entrypoint": ["true"]});
    let ended = world.sandbox_with(&changes).await;
    world.await_state(&ended, "Terminated").await;
    world.hand.advance(Duration::from_secs(59));
    assert_eq!(world.state(&left).await, "Running");
    world.hand.advance(Duration::from_secs(1));
    for id in [&left, &ended] {
        world.await_state(id, "gone").await;
    }
    world.await_nothing_left().await;
}
