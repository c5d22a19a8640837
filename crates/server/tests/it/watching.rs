//! Watchers of events who want to be told of some changes alone.

use serde_json::json;

use crate::world::{PATIENCE, World};

/// What a watcher is told until this event of this sandbox, as `event id` words.
async fn told(world: &World, query: &str, last: (&str, &str)) -> Vec<String> {
    let call = world.call("GET", &format!("/x/events?{query}"));
    // From the beginning on, so that nothing is told before the watcher is there.
    let first = first_event(world).await;
    let mut stream = call.header("last-event-id", &first).begin().await;
    assert_eq!(stream.response.status(), 200, "{query}");
    let mut text = String::new();
    let mut events = Vec::new();
    while !events
        .iter()
        .any(|it| *it == format!("{} {}", last.0, last.1))
    {
        let piece = tokio::time::timeout(PATIENCE, stream.piece()).await;
        let piece = piece.unwrap_or_else(|_| panic!("{query} told {events:?}"));
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        events = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str::<serde_json::Value>(data).unwrap())
            .filter(|data| data["sandboxId"].is_string())
            .map(|data| {
                let word = |name: &str| data[name].as_str().unwrap().to_owned();
                format!("{} {}", word("event"), word("sandboxId"))
            })
            .collect();
    }
    events
}

/// The id of the event before the first.
async fn first_event(world: &World) -> String {
    let run = world
        .call("GET", "/x/events")
        .header("last-event-id", "0-0");
    let mut stream = run.begin().await;
    let mut text = String::new();
    while !text.contains("\nid: ") {
        text.push_str(std::str::from_utf8(&stream.piece().await.unwrap()).unwrap());
    }
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap();
    format!("{}-0", id.split_once('-').unwrap().0)
}

#[tokio::test]
async fn only_what_is_asked_for_is_told() {
    let world = World::new().await;
    let a = world
        .sandbox_with(&json!({"metadata": {"team": "a", "x": "1"}}))
        .await;
    let b = world
        .sandbox_with(&json!({"metadata": {"team": "b", "x": "1"}}))
        .await;
    for id in [&a, &b] {
        world
            .call("POST", &format!("/v1/sandboxes/{id}/pause"))
            .send()
            .await;
        world
            .call("POST", &format!("/v1/sandboxes/{id}/resume"))
            .send()
            .await;
        world
            .call("DELETE", &format!("/v1/sandboxes/{id}"))
            .send()
            .await;
    }
    let all = ["started", "paused", "resumed", "removed"];
    for (query, sandboxes, events) in [
        (String::new(), vec![&a, &b], &all[..]),
        (format!("sandboxId={a}"), vec![&a], &all[..]),
        (
            format!("sandboxId={a}&sandboxId={b}"),
            vec![&a, &b],
            &all[..],
        ),
        (
            "event=paused&event=REMOVED".to_owned(),
            vec![&a, &b],
            &["paused", "removed"][..],
        ),
        (
            "state=paused&state=Stopping".to_owned(),
            vec![&a, &b],
            &["paused", "removed"][..],
        ),
        ("metadata=team%3Da".to_owned(), vec![&a], &all[..]),
        (
            "metadata=team%3Db%26x%3D1&event=removed".to_owned(),
            vec![&b],
            &["removed"][..],
        ),
        (
            format!("sandboxId={b}&state=Running"),
            vec![&b],
            &["started", "resumed"][..],
        ),
    ] {
        let last = (*events.last().unwrap(), sandboxes.last().unwrap().as_str());
        let found = told(&world, &query, last).await;
        let mut expected: Vec<String> = Vec::new();
        for id in &sandboxes {
            expected.extend(events.iter().map(|event| format!("{event} {id}")));
        }
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        assert_eq!(sorted(found), sorted(expected), "{query}");
    }
}

#[tokio::test]
async fn bad_filters_are_refused_at_once() {
    let world = World::new().await;
    for (query, expected) in [
        ("state=runing", "400 SANDBOX::INVALID_PARAMETER"),
        ("event=exploded", "400 SANDBOX::INVALID_PARAMETER"),
        ("sandboxId=..%2f..", "400 SANDBOX::INVALID_PARAMETER"),
        ("sandboxId=", "400 SANDBOX::INVALID_PARAMETER"),
        ("metadata=nonsense", "400 INVALID_METADATA_FORMAT"),
    ] {
        let answer = world
            .call("GET", &format!("/x/events?{query}"))
            .send()
            .await;
        assert_eq!(answer.code(), expected, "{query}");
    }
    let refused = world.call("GET", "/x/events?state=runing").send().await;
    assert!(refused.text().contains("Running"), "{refused:?}");
}

#[tokio::test]
async fn who_is_told_nothing_still_hears_that_it_is_heard() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let mut stream = world.call("GET", "/x/events?event=removed").begin().await;
    let mut heard = String::new();
    while !heard.contains("still here") {
        let path = format!("/v1/sandboxes/{id}/metadata");
        let patch = world.call("PATCH", &path).json(&json!({"a": "b"}));
        assert_eq!(patch.send().await.status, 200);
        world.hand.advance(std::time::Duration::from_secs(2));
        let piece = tokio::time::timeout(std::time::Duration::from_millis(20), stream.piece());
        if let Ok(Some(piece)) = piece.await {
            heard.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
    assert!(!heard.contains("labelled"), "{heard}");
}
