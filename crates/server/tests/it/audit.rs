//! What is noted of whom.

use std::path::PathBuf;
use std::time::Duration;

use barchan_server::audit::{Line, Outcome, Reader, folder};
use serde_json::json;

use crate::guest;
use crate::world::{Call, Set, World, request};

/// All lines that were written when the server stopped.
async fn lines(world: &mut World) -> Vec<Line> {
    world.stop().await;
    let mut reader = Reader::open(&folder(&world.state_dir())).unwrap();
    std::iter::from_fn(|| reader.next_line().unwrap()).collect()
}

/// Who did what with what, and what came of it.
fn word(line: &Line) -> String {
    let actor = &line.actor;
    let who = actor.tenant.as_deref().or(actor.label.as_deref());
    let who = who.unwrap_or(&actor.kind);
    let status = line.status.unwrap_or_default();
    let code = line.code.as_deref().unwrap_or("-");
    format!("{who} {} {status} {code}", line.operation)
}

/// What a test does, in the words of [`word`].
const EXPECTED: [&str; 12] = [
    "settings_key tenant.create 201 -",
    "settings_key key.create 201 -",
    "settings_key key.create 201 -",
    "a sandbox.create 202 -",
    "a sandbox.pause 202 -",
    "deploy sandbox.pause 409 DOCKER::SANDBOX_NOT_RUNNING",
    "a sandbox.resume 202 -",
    "a settings.reload 403 ADMIN_ONLY",
    "nobody sandbox.delete 401 INVALID_API_KEY",
    "nobody sandbox.proxy 401 MISSING_OR_INVALID_SECURE_ACCESS",
    "settings_key key.rotate 200 -",
    "socket sandbox.delete 204 -",
];

#[tokio::test]
async fn each_change_has_its_line_and_no_secret_is_in_any() {
    let mut world = World::with(&Set::guest(guest::echo().0)).await;
    let key = world.tenant("a", &json!({})).await;
    let (id, admin) = world.new_key(&json!({"label": "deploy"})).await;
    let secret = json!({"env": {"TOKEN": "hunter2"}, "metadata": {"label-of-mine": "private"}});
    let create = world.with_key(&key, "POST", "/v1/sandboxes?secret=hunter2");
    let create = create.header("x-request-id", "the-request");
    let made = create.json(&request(&secret)).send().await;
    let sandbox = made.json()["id"].as_str().unwrap().to_owned();
    let path = |rest: &str| format!("/v1/sandboxes/{sandbox}{rest}");
    for (call, status) in [
        (world.with_key(&key, "GET", &path("")), 200),
        (world.with_key(&key, "POST", &path("/pause")), 202),
        (world.with_key(&admin, "POST", &path("/pause")), 409),
        (world.with_key(&key, "POST", &path("/resume")), 202),
        (world.with_key(&key, "POST", "/x/reload"), 403),
        (
            world
                .with_key(&key, "POST", &path("/proxy/44772/command?x=hunter2"))
                .body("hunter2"),
            200,
        ),
        (
            world.with_key("hunter2-hunter2-hunter2", "DELETE", &path("")),
            401,
        ),
        (world.bare("GET", &path("/proxy/80/")), 401),
        (world.call("POST", &format!("/x/keys/{id}/rotate")), 200),
        (Call::unix(&world.unix_socket(), "DELETE", &path("")), 204),
    ] {
        world.hand.advance(Duration::from_secs(1));
        let answer = call.send().await;
        assert!(
            answer.status == status || answer.status == 404,
            "{status}: {answer:?}"
        );
    }
    let (own, token) = (
        world.key(),
        std::fs::read(world.state_dir().join("server/token_seed")).unwrap(),
    );
    let token = String::from_utf8(token).unwrap().trim().to_owned();
    let lines = lines(&mut world).await;
    let words: Vec<String> = lines.iter().map(word).collect();
    assert_eq!(words, EXPECTED);
    let create = &lines[3];
    assert_eq!(create.sandbox.as_deref(), Some(&*sandbox));
    assert_eq!(
        (&*create.request_id, &*create.peer),
        ("the-request", "127.0.0.1")
    );
    assert_eq!(lines[2].target.as_deref(), Some(&*id));
    assert_eq!(lines[0].target.as_deref(), Some("a"));
    let last = lines.last().unwrap();
    assert!(last.actor.uid.is_some() && last.peer == "local", "{last:?}");
    assert_eq!(lines[8].outcome, Outcome::Refused);
    let hidden = |key: &str| key.rsplit('_').next().unwrap().to_owned();
    let told = ["hunter2", "private", &own, &token].map(str::to_owned);
    let secrets = told.into_iter().chain([hidden(&key), hidden(&admin)]);
    let logs = folder(&world.state_dir());
    for secret in secrets {
        let shows = |(path, bytes): &(PathBuf, Vec<u8>)| {
            path.starts_with(&logs) && String::from_utf8_lossy(bytes).contains(&secret)
        };
        assert!(!world.state_files().iter().any(shows), "{secret}");
    }
}

#[tokio::test]
async fn what_changes_in_sandboxes_is_noted_on_demand() {
    let world = Set {
        settings: "audit.proxied = true",
        ..Set::guest(guest::echo().0)
    };
    let mut world = World::with(&world).await;
    let key = world.tenant("a", &json!({})).await;
    let id = world.sandbox_of(&key).await;
    for method in ["GET", "POST", "DELETE"] {
        let path = format!("/v1/sandboxes/{id}/proxy/8080/show?x=hunter2");
        assert_eq!(world.with_key(&key, method, &path).send().await.status, 200);
    }
    let path = format!("/x/sandboxes/{id}/tcp/9999");
    let stream = world.with_key(&key, "GET", &path);
    let stream = stream
        .header("connection", "upgrade")
        .header("upgrade", "tcp");
    assert_eq!(stream.send().await.status, 502);
    let lines = lines(&mut world).await;
    let told: Vec<String> = lines.iter().map(word).collect();
    let stream = lines.iter().find(|it| it.operation == "sandbox.connect");
    let target = stream.and_then(|it| it.target.as_deref());
    assert_eq!(target, Some("9999"), "{told:?}");
    let inside: Vec<&Line> = lines
        .iter()
        .filter(|it| it.operation == "sandbox.proxy")
        .collect();
    assert_eq!(inside.len(), 2);
    let (sandbox, port) = (&inside[0].sandbox, &inside[0].target);
    assert_eq!(
        (sandbox.as_deref(), port.as_deref()),
        (Some(id.as_str()), Some("8080"))
    );
}

/// A token opens the port of whoever has it; the layer is of whose key comes along.
#[tokio::test]
async fn a_layer_behind_a_command_is_of_whoever_asked_for_it() {
    let mut world = World::with(&Set::guest(guest::echo().0)).await;
    let key = world.tenant("a", &json!({})).await;
    let id = world.sandbox_of(&key).await;
    let (name, token) = world.token(&id).await;
    let command = format!("/v1/sandboxes/{id}/proxy/44772/command");
    for key in [None, Some(&key)] {
        let call = world.bare("POST", &command).header(&name, &token);
        let call = key.iter().fold(call, |call, key| {
            let call = call.header("open-sandbox-api-key", key);
            call.header("x-barchan-seal", "")
        });
        let answer = call.json(&json!({"command": "make"})).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let lines = lines(&mut world).await;
    let words: Vec<String> = lines.iter().map(word).collect();
    assert_eq!(words.last().unwrap(), "a layer.seal 200 -", "{words:?}");
    let sealed = lines.last().unwrap();
    assert_eq!(
        (&*sealed.actor.kind, sealed.sandbox.as_deref()),
        ("key", Some(id.as_str()))
    );
}

/// Those who are told to wait have one line in each second, and changes have theirs all the same.
#[tokio::test]
async fn a_flood_of_guesses_does_not_fill_the_log() {
    let mut world = World::new().await;
    for _ in 0..200 {
        world.with_key("guess", "GET", "/v1/sandboxes").send().await;
    }
    world.sandbox().await;
    let lines = lines(&mut world).await;
    let count = |code: Option<&str>| lines.iter().filter(|it| it.code.as_deref() == code).count();
    assert_eq!(count(Some("INVALID_API_KEY")), 50);
    assert_eq!(count(Some("TOO_MANY_FAILURES")), 1);
    assert_eq!(count(None), 1);
}

/// A caller who hangs up is noted, and a log that is switched off is not there.
#[tokio::test]
async fn who_hangs_up_is_noted_and_nobody_is_without_a_log() {
    let mut world = World::new().await;
    world.fake.let_creates_through(false);
    let mut calling = tokio::task::JoinSet::new();
    let call = world
        .call("POST", "/v1/sandboxes")
        .json(&request(&json!({})));
    calling.spawn(call.try_send());
    crate::world::until("it is asked for", async || {
        let list = world.call("GET", "/v1/sandboxes").send().await.json();
        list["pagination"]["totalItems"] == 1
    })
    .await;
    calling.shutdown().await;
    let folder = folder(&world.state_dir());
    crate::world::until("it is noted", async || {
        let mut reader = Reader::open(&folder).unwrap();
        let line = reader.next_line().unwrap();
        line.is_some_and(|line| line.outcome == Outcome::Abandoned && line.status.is_none())
    })
    .await;
    world.fake.let_creates_through(true);
    world.stop().await;
    let mut quiet = World::with(&Set::settings("audit.enabled = false")).await;
    quiet.sandbox().await;
    quiet.stop().await;
    assert!(!barchan_server::audit::folder(&quiet.state_dir()).exists());
}

/// On such a file every write fails as on a full disk.
#[tokio::test]
async fn a_full_disk_stops_no_request() {
    let mut world = World::new().await;
    world.stop().await;
    let newest = folder(&world.state_dir()).join("changes.jsonl");
    std::fs::remove_file(&newest).ok();
    std::os::unix::fs::symlink("/dev/full", &newest).unwrap();
    world.start().await.unwrap();
    for _ in 0..3 {
        world.sandbox().await;
    }
    world.stop().await;
    std::fs::remove_file(&newest).unwrap();
    world.start().await.unwrap();
    let id = world.sandbox().await;
    let lines = lines(&mut world).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].sandbox.as_deref(), Some(id.as_str()));
}
