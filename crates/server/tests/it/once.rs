//! Commands with an idempotency key, behind a daemon that starts each id once.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use barchan_runtime::EndReason;
use barchan_runtime::fake::Guest;
use barchan_wire::id::SandboxId;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use crate::guest::Body;
use crate::world::{Answer, Call, Set, World, until};

/// What the daemon saw.
#[derive(Default)]
struct Seen {
    /// How often each script was started.
    runs: HashMap<String, u32>,
    ids: HashSet<String>,
    forgotten: HashSet<String>,
    requests: u32,
}

/// A daemon of commands: the script `slow` ends when the gate opens, `bad` is refused, `long`
/// prints much.
#[derive(Clone)]
struct Daemon {
    seen: Arc<Mutex<Seen>>,
    gate: watch::Sender<bool>,
}

impl Daemon {
    fn new() -> Self {
        Self {
            seen: Arc::default(),
            gate: watch::Sender::new(false),
        }
    }

    fn guest(&self) -> Guest {
        let daemon = self.clone();
        Arc::new(move |stream| {
            let daemon = daemon.clone();
            Box::pin(async move {
                let service = service_fn(|request| {
                    let daemon = daemon.clone();
                    async move { Ok::<_, Infallible>(daemon.answer(request).await) }
                });
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                served.await.unwrap_or_default();
            })
        })
    }

    fn runs(&self, script: &str) -> u32 {
        let seen = self.seen.lock().unwrap();
        seen.runs.get(script).copied().unwrap_or_default()
    }

    fn requests(&self) -> u32 {
        self.seen.lock().unwrap().requests
    }

    fn forget_all(&self) {
        let mut seen = self.seen.lock().unwrap();
        seen.forgotten = seen.ids.clone();
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let header = |name: &str| request.headers().get(name).map(|it| it.to_str().unwrap());
        let id = header("x-barchan-command-id").map(str::to_owned);
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let script = String::from_utf8(body.to_vec()).unwrap();
        let Some(id) = id else {
            return whole(200, "no id");
        };
        {
            let mut seen = self.seen.lock().unwrap();
            seen.requests += 1;
            if seen.forgotten.contains(&id) {
                return whole(410, "forgotten");
            }
            if script == "bad" {
                return whole(400, "refused");
            }
            if seen.ids.insert(id.clone()) {
                *seen.runs.entry(script.clone()).or_default() += 1;
            }
        }
        let begun = event(&format!("begun {id}"));
        let rest = match script.as_str() {
            "long" => event(&"x".repeat(1000)).repeat(600),
            _ => event(&format!("{script} done")),
        };
        let gate = (script == "slow").then(|| self.gate.subscribe());
        let pieces = futures::stream::unfold((0, gate), move |(at, mut gate)| {
            let piece = [begun.clone(), rest.clone()].into_iter().nth(at);
            async move {
                if let Some(gate) = gate.as_mut().filter(|_| at == 1) {
                    gate.wait_for(|open| *open).await.unwrap();
                }
                Some((Ok(Frame::data(Bytes::from(piece?))), (at + 1, gate)))
            }
        });
        Response::builder()
            .header("content-type", "text/event-stream")
            .body(BodyExt::boxed_unsync(StreamBody::new(pieces)))
            .unwrap()
    }
}

fn event(text: &str) -> String {
    format!("{{\"type\":\"stdout\",\"text\":\"{text}\",\"timestamp\":1}}\n\n")
}

fn whole(status: u16, text: &'static str) -> Response<Body> {
    let body = Full::from(text).map_err(|never| match never {});
    let response = Response::builder().status(status);
    response.body(body.boxed_unsync()).unwrap()
}

async fn world() -> (World, Daemon, SandboxId) {
    let daemon = Daemon::new();
    let world = World::with(&Set::guest(daemon.guest())).await;
    let id = world.sandbox().await;
    (world, daemon, id)
}

async fn call(world: &World, id: &SandboxId, key: &str, script: &str) -> Call {
    let call = world.inside(id, 44772, "POST", "/command").await;
    call.header("idempotency-key", key).body(script.to_owned())
}

async fn ask(world: &World, id: &SandboxId, key: &str, script: &str) -> Answer {
    call(world, id, key, script).await.send().await
}

#[tokio::test]
async fn a_key_is_run_once_and_answered_again_to_the_byte() {
    let (mut world, daemon, id) = world().await;
    let first = ask(&world, &id, "k", "quick").await;
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (200, "")
    );
    assert!(first.text().contains("quick done"));
    for round in 0..3 {
        if round == 1 {
            world.kill().await;
            world.start().await.unwrap();
        }
        let again = ask(&world, &id, "k", "quick").await;
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("content-type"), "text/event-stream");
        assert_eq!(again.header("idempotency-replayed"), "true");
    }
    assert_eq!((daemon.runs("quick"), daemon.requests()), (1, 1));
    // Another key, another sandbox and no key are other commands.
    ask(&world, &id, "k2", "quick").await;
    let other = world.sandbox().await;
    ask(&world, &other, "k", "quick").await;
    assert_eq!(daemon.runs("quick"), 3);
    let bare = world.inside(&id, 44772, "POST", "/command").await;
    let forged = bare.header("x-barchan-command-id", "00112233445566778899aabbccddeeff");
    assert_eq!(forged.body("quick").send().await.text(), "no id");
}

#[tokio::test]
async fn a_running_command_is_joined_also_after_the_server_was_killed() {
    let (mut world, daemon, id) = world().await;
    let mut first = call(&world, &id, "k", "slow").await.begin().await;
    assert!(
        first
            .piece()
            .await
            .unwrap()
            .starts_with(b"{\"type\":\"stdout\",\"text\":\"begun")
    );
    world.kill().await;
    world.start().await.unwrap();
    let mut joined = call(&world, &id, "k", "slow").await.begin().await;
    let begun = joined.piece().await.unwrap();
    daemon.gate.send_replace(true);
    assert!(
        joined
            .piece()
            .await
            .unwrap()
            .ends_with(b"slow done\",\"timestamp\":1}\n\n")
    );
    assert_eq!(joined.piece().await, None);
    let again = ask(&world, &id, "k", "slow").await;
    assert!(again.body.starts_with(&begun), "the same command");
    assert_eq!(daemon.runs("slow"), 1);
}

#[tokio::test]
async fn the_end_is_kept_when_the_caller_has_gone() {
    let (world, daemon, id) = world().await;
    let mut first = call(&world, &id, "k", "slow").await.begin().await;
    first.piece().await.unwrap();
    drop(first);
    daemon.gate.send_replace(true);
    until("the end is kept", async || {
        let again = ask(&world, &id, "k", "slow").await;
        again.header("idempotency-replayed") == "true"
    })
    .await;
    world.fake.end(&id, EndReason::Oom);
    until("the sandbox has ended", async || {
        world.state(&id).await != "Running"
    })
    .await;
    // Its endpoint has gone with it, so this comes with the server's key.
    let path = format!("/v1/sandboxes/{id}/proxy/44772/command");
    let again = world.call("POST", &path).header("idempotency-key", "k");
    let again = again.body("slow").send().await;
    assert!(again.text().contains("slow done"), "{again:?}");
    assert_eq!(daemon.runs("slow"), 1);
}

#[tokio::test]
async fn a_command_whose_sandbox_ended_is_not_run_again() {
    for deletes in [false, true] {
        let (mut world, daemon, id) = world().await;
        let mut first = call(&world, &id, "k", "slow").await.begin().await;
        first.piece().await.unwrap();
        world.kill().await;
        if deletes {
            world.start().await.unwrap();
            let path = format!("/v1/sandboxes/{id}");
            assert_eq!(world.call("DELETE", &path).send().await.status, 204);
        } else {
            world.fake.end(&id, EndReason::Oom);
            world.start().await.unwrap();
        }
        for _ in 0..2 {
            let path = format!("/v1/sandboxes/{id}/proxy/44772/command");
            let again = world.call("POST", &path).header("idempotency-key", "k");
            let again = again.body("slow").send().await;
            assert_eq!(again.code(), "409 COMMAND_OUTCOME_UNKNOWN");
            let other = world.call("POST", &path).header("idempotency-key", "k2");
            let other = other.body("slow").send().await;
            assert_ne!(other.code(), "409 COMMAND_OUTCOME_UNKNOWN");
        }
        assert_eq!(daemon.runs("slow"), 1);
    }
}

#[tokio::test]
async fn a_paused_sandbox_is_waited_for() {
    let (world, daemon, id) = world().await;
    let mut first = call(&world, &id, "k", "slow").await.begin().await;
    first.piece().await.unwrap();
    drop(first);
    let verb = |verb: &str| format!("/sandboxes/{id}/{verb}");
    world.call("POST", &verb("pause")).send().await;
    let paused = ask(&world, &id, "k", "slow").await;
    assert_eq!(paused.code(), "409 DOCKER::SANDBOX_NOT_RUNNING");
    world.call("POST", &verb("resume")).send().await;
    daemon.gate.send_replace(true);
    assert!(
        ask(&world, &id, "k", "slow")
            .await
            .text()
            .contains("slow done")
    );
    assert_eq!(daemon.runs("slow"), 1);
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let (world, daemon, id) = world().await;
    ask(&world, &id, "k", "quick").await;
    assert_eq!(
        ask(&world, &id, "k", "other").await.code(),
        "422 IDEMPOTENCY_KEY_REUSED"
    );
    let exec = world.inside(&id, 44772, "POST", "/x/exec").await;
    let exec = exec
        .header("idempotency-key", "k")
        .body("quick")
        .send()
        .await;
    assert_eq!(exec.code(), "422 IDEMPOTENCY_KEY_REUSED");
    let (fits, too_long) = ("k".repeat(255), "k".repeat(256));
    for (key, status) in [("", 400), (&fits, 200), (&too_long, 400), ("a b!~", 200)] {
        assert_eq!(ask(&world, &id, key, "quick").await.status, status, "{key}");
    }
    let twice = call(&world, &id, "a", "quick").await;
    let twice = twice.and_header("idempotency-key", "b").send().await;
    assert_eq!(twice.code(), "400 INVALID_IDEMPOTENCY_KEY");
    assert_eq!(daemon.runs("other"), 0);
}

#[tokio::test]
async fn a_refusal_is_a_result_too() {
    let (world, daemon, id) = world().await;
    for _ in 0..2 {
        let answer = ask(&world, &id, "k", "bad").await;
        assert_eq!((answer.status, answer.text()), (400, "refused"));
    }
    assert_eq!(daemon.requests(), 1);
}

#[tokio::test]
async fn a_long_result_is_asked_for_again_and_bounded_when_nobody_knows_it() {
    let (world, daemon, id) = world().await;
    let first = ask(&world, &id, "k", "long").await;
    assert!(first.body.len() > 600_000);
    let again = ask(&world, &id, "k", "long").await;
    assert_eq!(
        (&again.body, again.header("idempotency-replayed")),
        (&first.body, "")
    );
    assert_eq!(daemon.runs("long"), 1);
    daemon.forget_all();
    let bounded = ask(&world, &id, "k", "long").await;
    assert_eq!(bounded.header("idempotency-replayed"), "true");
    assert!(bounded.body.len() < 300_000);
    assert!(bounded.text().contains("no longer kept"));
    let mut first = call(&world, &id, "k3", "slow").await.begin().await;
    first.piece().await.unwrap();
    daemon.forget_all();
    let lost = ask(&world, &id, "k3", "slow").await;
    assert_eq!(lost.code(), "409 COMMAND_OUTCOME_UNKNOWN");
}

#[tokio::test]
async fn many_with_one_key_at_once_run_one_command() {
    let (world, daemon, id) = world().await;
    let calls = (0..20).map(|_| ask(&world, &id, "k", "quick"));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.body == answers[0].body));
    assert_eq!(daemon.runs("quick"), 1);
}
