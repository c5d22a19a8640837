//! Diagnostics as text: what happened to a sandbox and what it is, also when it is gone.

use barchan_runtime::EndReason;
use barchan_runtime::fake::Guest;
use barchan_wire::id::SandboxId;
use serde_json::json;

use crate::guest::blunt;
use crate::world::{Answer, Set, World};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

async fn ask(world: &World, id: &str, rest: &str) -> Answer {
    let path = format!("/v1/sandboxes/{id}/diagnostics/{rest}");
    world.call("GET", &path).send().await
}

async fn text(world: &World, id: &SandboxId, rest: &str) -> String {
    let answer = ask(world, id.as_str(), rest).await;
    assert_eq!(answer.status, 200, "{rest}: {answer:?}");
    let kind = "text/plain; charset=utf-8";
    assert_eq!(answer.header("content-type"), kind, "{rest}");
    answer.text().to_owned()
}

fn load(answer: &'static [u8]) -> Set {
    Set::guest(blunt(answer, b""))
}

const LOAD: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
    {\"cpu_count\":2.0,\"cpu_used_pct\":12.5,\"mem_total_mib\":512.0,\"mem_used_mib\":64.25,\
    \"timestamp\":1}";

#[tokio::test]
async fn a_running_sandbox_is_told_of() {
    let world = World::with(&load(LOAD)).await;
    let id = world
        .sandbox_with(&json!({"metadata": {"team": "a"}, "env": {"API_TOKEN": "hunter2"}}))
        .await;
    world
        .call("POST", &format!("/v1/sandboxes/{id}/pause"))
        .send()
        .await;
    world
        .call("POST", &format!("/v1/sandboxes/{id}/resume"))
        .send()
        .await;
    let all = ask(&world, id.as_str(), "events?scope=%20Runtime%20")
        .await
        .json();
    let (kind, scope) = (&all["kind"], &all["scope"]);
    assert_eq!((kind, scope), (&json!("events"), &json!("runtime")));
    assert_eq!(all["delivery"], "inline");
    let content = all["content"].as_str().unwrap();
    assert_eq!(all["contentLength"], content.len());
    let events: Vec<&str> = content
        .lines()
        .map(|it| it.split_once(' ').unwrap().1)
        .collect();
    assert_eq!(events, ["created", "started", "paused", "resumed"]);
    let last = ask(&world, id.as_str(), "events?limit=1").await;
    assert_eq!(last.header("deprecation"), "true");
    assert!(last.text().ends_with(" resumed"), "{last:?}");
    let cut = ask(&world, id.as_str(), "events?scope=all&limit=2")
        .await
        .json();
    assert_eq!(cut["truncated"], true, "{cut}");

    let inspected = text(&world, &id, "inspect").await;
    for line in [
        format!("Sandbox:    {id}"),
        "State:      Running, since ".to_owned(),
        "Image:      host".to_owned(),
        "Entrypoint: \"tail\" \"-f\" \"/dev/null\"".to_owned(),
        "Limits:     cpu 1000m, memory 2147483648 bytes, processes 4096".to_owned(),
        "Usage:      cpu 12.5 % of 2.00 cores, memory 64.2 of 512.0 MiB".to_owned(),
        "Metadata:   team=a".to_owned(),
    ] {
        assert!(inspected.contains(&line), "{line} in {inspected}");
    }
    assert!(
        ask(&world, id.as_str(), "inspect")
            .await
            .header("deprecation")
            .is_empty()
    );
    let summary = text(&world, &id, "summary").await;
    let banners: Vec<&str> = summary
        .lines()
        .filter(|it| it.starts_with("====="))
        .collect();
    assert_eq!(
        banners,
        [
            "===== INSPECT =====",
            "===== EVENTS =====",
            "===== LOGS ====="
        ]
    );
    assert!(summary.contains(&inspected.lines().next().unwrap().to_owned()));
    assert!(
        !summary.contains("hunter2") && !summary.contains("API_TOKEN"),
        "{summary}"
    );
}

#[tokio::test]
async fn ended_and_gone_sandboxes_are_told_of_and_their_limits_survive_a_restart() {
    let mut world = World::new().await;
    let ended = world
        .sandbox_with(&json!({"entrypoint": ["sh", "-c", "echo last; sleep 9"]}))
        .await;
    let gone = world.sandbox().await;
    world.fake.end(&ended, EndReason::Oom);
    world.await_state(&ended, "Failed").await;
    world
        .call("DELETE", &format!("/v1/sandboxes/{gone}"))
        .send()
        .await;
    for _ in 0..2 {
        let inspected = text(&world, &ended, "inspect").await;
        assert!(
            inspected.contains("State:      Failed, since"),
            "{inspected}"
        );
        assert!(
            inspected.contains("End:        oom (failure): The sandbox used"),
            "{inspected}"
        );
        assert!(inspected.contains("Usage:      not known: the sandbox does not run"));
        assert!(inspected.contains("Limits:     cpu 1000m"), "{inspected}");
        let summary = text(&world, &ended, "summary?tail=1&event_limit=1").await;
        assert!(
            summary.contains(" ended: The sandbox used more memory"),
            "{summary}"
        );
        assert!(summary.ends_with("===== LOGS =====\nlast\n"), "{summary}");

        let inspected = text(&world, &gone, "inspect").await;
        assert!(inspected.contains("State:      gone, since"), "{inspected}");
        assert!(
            inspected.contains("End:        killed (success)"),
            "{inspected}"
        );
        let events = ask(&world, gone.as_str(), "events?scope=runtime")
            .await
            .json();
        assert!(
            events["content"].as_str().unwrap().contains(" removed: "),
            "{events}"
        );
        let summary = text(&world, &gone, "summary").await;
        assert!(
            summary.contains("===== LOGS =====\n(not kept: "),
            "{summary}"
        );
        let logs = ask(&world, gone.as_str(), "logs?scope=all").await;
        assert_eq!(logs.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
        world.kill().await;
        world.start().await.unwrap();
    }
}

#[tokio::test]
async fn wrong_questions_are_refused_before_anybody_is_looked_for() {
    let world = World::new().await;
    let id = world.sandbox().await;
    for (rest, of_nobody, of_somebody) in [
        (
            "events?scope=other",
            "400 DIAGNOSTICS_SCOPE_UNSUPPORTED",
            None,
        ),
        (
            "events?scope=container",
            "400 DIAGNOSTICS_SCOPE_UNSUPPORTED",
            None,
        ),
        ("events?scope=", "400 DIAGNOSTICS_SCOPE_UNSUPPORTED", None),
        (
            "logs?scope=runtime",
            "400 DIAGNOSTICS_SCOPE_UNSUPPORTED",
            None,
        ),
        ("events?limit=0", "422", None),
        ("events?limit=501", "422", None),
        ("events?limit=x&scope=all", "422", None),
        ("summary?tail=0", "422", None),
        ("summary?event_limit=501", "422", None),
        (
            "events?scope=all",
            "404 DOCKER::SANDBOX_NOT_FOUND",
            Some("200"),
        ),
        ("events", "404 DOCKER::SANDBOX_NOT_FOUND", Some("200")),
        ("inspect", "404 DOCKER::SANDBOX_NOT_FOUND", Some("200")),
        ("summary", "404 DOCKER::SANDBOX_NOT_FOUND", Some("200")),
    ] {
        let somebody = of_somebody.unwrap_or(of_nobody);
        assert_eq!(ask(&world, NOBODY, rest).await.code(), of_nobody, "{rest}");
        assert_eq!(
            ask(&world, "..%2f..", rest).await.code(),
            of_nobody,
            "{rest}"
        );
        assert_eq!(
            ask(&world, id.as_str(), rest).await.code(),
            somebody,
            "{rest}"
        );
        let path = format!("/v1/sandboxes/{id}/diagnostics/{rest}");
        assert_eq!(
            world.bare("GET", &path).send().await.code(),
            "401 MISSING_API_KEY"
        );
    }
}

#[tokio::test]
async fn tenants_are_told_of_their_own_sandboxes_alone_also_when_those_are_gone() {
    let world = World::new().await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let running = world.sandbox_of(&own).await;
    let gone = world.sandbox_of(&own).await;
    let path = format!("/v1/sandboxes/{gone}");
    let deleted = world.with_key(&own, "DELETE", &path).send().await;
    assert_eq!(deleted.status, 204);
    for id in [&running, &gone] {
        for kind in ["events?scope=all", "inspect", "summary"] {
            let path = format!("/v1/sandboxes/{id}/diagnostics/{kind}");
            let told = world.with_key(&own, "GET", &path).send().await;
            assert_eq!(told.status, 200, "{path}");
            let told = world.with_key(&other, "GET", &path).send().await;
            assert_eq!(told.code(), "404 DOCKER::SANDBOX_NOT_FOUND", "{path}");
            assert!(!told.text().contains("killed"), "{told:?}");
        }
    }
}

#[tokio::test]
async fn what_is_switched_off_is_not_told() {
    let off = "[features]\ndiagnostics = false";
    let world = World::with(&Set::settings(off)).await;
    let id = world.sandbox().await;
    for rest in ["events", "inspect", "summary"] {
        assert_eq!(
            ask(&world, id.as_str(), rest).await.code(),
            "403 FEATURE_DISABLED"
        );
    }
    assert_eq!(ask(&world, id.as_str(), "logs").await.status, 200);
    let world = World::with(&Set::settings("[features]\nlogs = false")).await;
    let id = world
        .sandbox_with(&json!({"entrypoint": ["sh", "-c", "echo hunter2; sleep 9"]}))
        .await;
    let summary = text(&world, &id, "summary").await;
    let logs = summary.split("===== LOGS =====\n").nth(1).unwrap();
    assert_eq!(logs, "(switched off by this server's operator)\n");
}

#[tokio::test]
async fn hostile_words_are_made_visible() {
    let world = World::new().await;
    let script = "echo \u{1b}]0;owned\u{7} \u{202e}txt; sleep 9";
    let id = world
        .sandbox_with(&json!({"entrypoint": ["sh", "-c", script]}))
        .await;
    for rest in ["inspect", "summary"] {
        let told = text(&world, &id, rest).await;
        let obeyed = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(!told.chars().any(obeyed), "{told:?}");
        assert!(told.contains("\\u{1b}"), "{told}");
    }
    let long = "x".repeat(60_000);
    let id = world
        .sandbox_with(&json!({"entrypoint": ["sh", "-c", format!("echo {long}; sleep 9")]}))
        .await;
    let told = text(&world, &id, "summary").await;
    assert!(
        told.contains("x (cut)") && told.len() < 70_000,
        "{}",
        told.len()
    );
}

#[tokio::test]
async fn a_hostile_daemon_does_not_hold_up_diagnostics() {
    let silent: Guest = std::sync::Arc::new(|stream| {
        Box::pin(async move {
            let _kept = stream;
            std::future::pending().await
        })
    });
    let huge = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"cpu_count\":1";
    let wild = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
        {\"cpu_count\":1e308,\"cpu_used_pct\":-5.0,\"mem_total_mib\":1e300,\"mem_used_mib\":0.0,\
        \"timestamp\":1}";
    let unknown = "Usage:      not known: its daemon did not say in time";
    for (set, expected) in [
        (Set::guest(silent), unknown),
        (Set::guest(blunt(huge, b"0000000000000000")), unknown),
        (
            load(b"HTTP/1.1 500 No\r\nconnection: close\r\n\r\n{}"),
            unknown,
        ),
        (
            load(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[1]"),
            unknown,
        ),
        (load(b"no HTTP at all\r\n\r\n"), unknown),
        (
            load(wild),
            "Usage:      cpu 0.0 % of 1000000000000.00 cores",
        ),
    ] {
        let world = World::with(&set).await;
        let id = world.sandbox().await;
        let told = text(&world, &id, "inspect").await;
        assert!(told.contains(expected), "{told}");
        assert_eq!(world.state(&id).await, "Running");
    }
}
