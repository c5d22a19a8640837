//! What waits for somebody's word: who is asked, who says something, and who hears of it.

use std::time::Duration;

use barchan_runtime::EndReason;
use barchan_server::audit::{Reader, folder};
use barchan_wire::egress::{Ask, Verdict, What};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Time;
use serde_json::{Value, json};

use crate::outbound::program::Program;
use crate::outbound::{await_listener, guarded};
use crate::world::{Answer, World, until};

/// A connection of a sandbox waits for so many seconds.
fn ask(world: &World, program: &Program, id: &SandboxId, (name, seconds): (&str, u64)) {
    let until = Time::new(world.now().wall).plus_seconds(seconds).unwrap();
    let ask = Ask {
        id: format!("ask-{name}").replace('.', "-"),
        until,
    };
    program.ask(id, name, ask);
}

async fn list(world: &World, query: &str) -> Vec<Value> {
    let answer = world
        .call("GET", &format!("/x/approvals{query}"))
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"].as_array().unwrap().clone()
}

/// The approval about a name, once there is one.
async fn of(world: &World, name: &str) -> Value {
    let find = async || {
        let all = list(world, "").await;
        all.into_iter().find(|it| it["details"]["name"] == name)
    };
    until("somebody to be asked", async || find().await.is_some()).await;
    find().await.unwrap()
}

async fn state(world: &World, name: &str) -> String {
    of(world, name).await["state"].as_str().unwrap().to_owned()
}

async fn say(world: &World, approval: &Value, word: &str, reason: Option<&str>) -> Answer {
    let path = format!("/x/approvals/{}/{word}", approval["id"].as_str().unwrap());
    let call = world.call("POST", &path);
    match reason {
        Some(reason) => call.json(&json!({ "reason": reason })).send().await,
        None => call.send().await,
    }
}

#[tokio::test]
async fn a_word_is_kept_and_told() {
    let (mut world, program) = guarded("").await;
    let id = world.sandbox().await;
    ask(&world, &program, &id, ("a.example", 60));
    ask(&world, &program, &id, ("b.example", 60));
    let a = of(&world, "a.example").await;
    assert_eq!(
        (&a["kind"], &a["state"], &a["default"]),
        (&json!("egress"), &json!("pending"), &json!("reject"))
    );
    assert_eq!(a["subject"], "a.example (192.0.2.1) on port 443");
    assert_eq!(a["sandboxId"], id.as_str());
    let b = of(&world, "b.example").await;
    let said = say(&world, &a, "approve", Some("a mirror")).await;
    assert_eq!(
        (said.status, &said.json()["state"]),
        (200, &json!("approved"))
    );
    assert_eq!(said.json()["decision"]["reason"], "a mirror");
    assert_eq!(said.json()["decision"]["by"], "settings_key");
    assert_eq!(say(&world, &b, "reject", None).await.status, 200);
    assert_eq!(
        program.known().decisions,
        ["ask-a-example true", "ask-b-example false"]
    );
    let again = say(&world, &a, "reject", None).await;
    assert_eq!(again.code(), "409 APPROVAL::NOT_PENDING");
    let nobody = say(&world, &json!({"id": "nobody"}), "approve", None).await;
    assert_eq!(nobody.code(), "404 APPROVAL::NOT_FOUND");
    for (query, expected) in [
        ("", 2),
        ("?state=Approved", 1),
        ("?state=pending", 0),
        ("?state=approved&state=rejected", 2),
    ] {
        assert_eq!(list(&world, query).await.len(), expected, "{query}");
    }
    let bad = world.call("GET", "/x/approvals?state=maybe").send().await;
    assert_eq!(bad.code(), "400 SANDBOX::INVALID_PARAMETER");
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(state(&world, "a.example").await, "approved");
    world.stop().await;
    let mut reader = Reader::open(&folder(&world.state_dir())).unwrap();
    let lines = std::iter::from_fn(|| reader.next_line().unwrap());
    let about = |line: barchan_server::audit::Line| {
        let is_it = line.operation.starts_with("approval.") && line.status == Some(200);
        is_it.then(|| format!("{} {}", line.operation, line.target.unwrap()))
    };
    let noted: Vec<String> = lines.filter_map(about).collect();
    let ids = [&a, &b].map(|it| it["id"].as_str().unwrap().to_owned());
    assert_eq!(
        noted,
        [
            format!("approval.approve {}", ids[0]),
            format!("approval.reject {}", ids[1])
        ]
    );
}

#[tokio::test]
async fn what_nobody_says_anything_about_expires() {
    let (world, program) = guarded("").await;
    let (id, other) = (world.sandbox().await, world.sandbox().await);
    ask(&world, &program, &id, ("soon.example", 30));
    ask(&world, &program, &id, ("late.example", 300));
    ask(&world, &program, &id, ("gone.example", 300));
    ask(&world, &program, &id, ("answered.example", 300));
    ask(&world, &program, &other, ("ended.example", 300));
    let soon = of(&world, "soon.example").await;
    let gone = of(&world, "gone.example").await;
    of(&world, "ended.example").await;
    world.hand.advance(Duration::from_secs(30));
    until("it to expire", async || {
        state(&world, "soon.example").await == "expired"
    })
    .await;
    assert_eq!(
        say(&world, &soon, "approve", None).await.code(),
        "409 APPROVAL::NOT_PENDING"
    );
    // The program does not know it any more.
    program
        .known()
        .waiting
        .retain(|it| it != "ask-gone-example");
    assert_eq!(
        say(&world, &gone, "approve", None).await.code(),
        "409 APPROVAL::EXPIRED"
    );
    assert_eq!(state(&world, "gone.example").await, "expired");
    let number = of(&world, "answered.example").await["details"]["connection"]
        .as_u64()
        .unwrap();
    program.again(&id, number, (What::Verdict, Verdict::Deny));
    until("it to be over", async || {
        state(&world, "answered.example").await == "expired"
    })
    .await;
    world.fake.end(&other, EndReason::Exit(0));
    until("it to be over", async || {
        state(&world, "ended.example").await == "expired"
    })
    .await;
    assert_eq!(state(&world, "late.example").await, "pending");
}

#[tokio::test]
async fn a_restart_converges() {
    let (mut world, mut program) = guarded("").await;
    let id = world.sandbox().await;
    ask(&world, &program, &id, ("a.example", 300));
    of(&world, "a.example").await;
    // The program is the same, and asks the same.
    world.kill().await;
    program.known().listeners = 0;
    world.start().await.unwrap();
    await_listener(&program).await;
    ask(&world, &program, &id, ("b.example", 300));
    of(&world, "b.example").await;
    let pending = list(&world, "?state=pending").await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    program.kill();
    let a = of(&world, "a.example").await;
    let unreached = say(&world, &a, "approve", None).await;
    assert_eq!(unreached.code(), "502 BACKEND_CONNECTION_FAILED");
    program.start();
    for name in ["a.example", "b.example"] {
        until("it to be over", async || {
            state(&world, name).await == "expired"
        })
        .await;
    }
}

#[tokio::test]
async fn tenants_see_their_own_and_decide_nothing() {
    let (world, program) = guarded("").await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let id = world.sandbox_of(&own).await;
    ask(&world, &program, &id, ("a.example", 300));
    let a = of(&world, "a.example").await;
    assert_eq!(a["tenant"], "a");
    let path = format!("/x/approvals/{}", a["id"].as_str().unwrap());
    for (key, found, shown) in [(&own, 1, "200"), (&other, 0, "404 APPROVAL::NOT_FOUND")] {
        let list = world
            .with_key(key, "GET", "/x/approvals")
            .send()
            .await
            .json();
        assert_eq!(list["items"].as_array().unwrap().len(), found);
        assert_eq!(world.with_key(key, "GET", &path).send().await.code(), shown);
        let decided = world
            .with_key(key, "POST", &format!("{path}/approve"))
            .send()
            .await;
        assert_eq!(decided.code(), "403 ADMIN_ONLY");
    }
    assert!(program.known().decisions.is_empty());
}
