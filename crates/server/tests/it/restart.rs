//! The server may die at any moment: what it promised holds, and what it did not leaves nothing.

use std::time::Duration;

use barchan_runtime::{EndReason, Limits, Plan, Runtime as _};
use barchan_server::StartError;
use barchan_server::app::SiteError;
use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::guest;
use crate::world::{PATIENCE, Set, World, request, until};

#[tokio::test]
async fn a_killed_server_comes_back_with_every_sandbox() {
    let mut world = World::new().await;
    let changes = json!({"metadata": {"a": "1"}, "timeout": null});
    let (running, paused, ended, deleted) = (
        world.sandbox_with(&changes).await,
        world.sandbox().await,
        world.sandbox().await,
        world.sandbox().await,
    );
    world
        .call("POST", &format!("/sandboxes/{paused}/pause"))
        .send()
        .await;
    world
        .call("DELETE", &format!("/sandboxes/{deleted}"))
        .send()
        .await;
    let before = world.get(&running).await.json();
    world.kill().await;
    world.fake.end(&ended, EndReason::Oom);
    world.start().await.unwrap();
    assert_eq!(
        world.get(&running).await.json(),
        before,
        "to the microsecond"
    );
    assert_eq!(world.state(&paused).await, "Paused");
    assert_eq!(world.state(&deleted).await, "gone");
    assert_eq!(world.get(&ended).await.json()["status"]["reason"], "oom");
    let path = format!("/v1/sandboxes/{paused}/resume");
    assert_eq!(world.call("POST", &path).send().await.status, 202);
    assert_eq!(
        world
            .inside(&running, 44772, "GET", "/ping")
            .await
            .send()
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn what_disagrees_after_a_restart_is_settled() {
    let mut world = World::new().await;
    let (lost, resumed) = (world.sandbox().await, world.sandbox().await);
    world
        .call("POST", &format!("/sandboxes/{resumed}/pause"))
        .send()
        .await;
    world.kill().await;
    world.fake.vanish(&lost);
    world.fake.resume(&resumed).await.unwrap();
    let stray = Plan {
        id: "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap(),
        image: "host".to_owned(),
        snapshot: None,
        from: None,
        entrypoint: vec!["sleep".to_owned()],
        env: Default::default(),
        limits: Limits::default(),
        pre_start: None,
        periodic: Vec::new(),
        volumes: Vec::new(),
        gpus: None,
        trust: None,
    };
    world.fake.create(stray).await.unwrap();
    world.start().await.unwrap();
    assert_eq!(world.get(&lost).await.json()["status"]["reason"], "lost");
    assert_eq!(world.state(&resumed).await, "Running");
    let left: Vec<_> = world.fake.plans().into_iter().map(|plan| plan.id).collect();
    assert_eq!(left, [resumed], "the stray is gone");
}

#[tokio::test]
async fn a_create_cut_short_is_failed_and_leaves_no_sandbox() {
    let mut world = World::new().await;
    world.fake.let_creates_through(false);
    let body = request(&json!({}));
    let call = world.call("POST", "/v1/sandboxes").json(&body);
    let cut = async {
        until("a pending sandbox", async || {
            let list = world
                .call("GET", "/sandboxes?state=pending")
                .send()
                .await
                .json();
            list["pagination"]["totalItems"] == 1
        })
        .await;
    };
    let (answer, ()) = tokio::join!(
        async {
            tokio::time::timeout(Duration::from_millis(300), call.try_send())
                .await
                .is_err()
        },
        cut
    );
    assert!(answer);
    world.kill().await;
    world.fake.let_creates_through(true);
    world.start().await.unwrap();
    let list = world.call("GET", "/sandboxes").send().await.json();
    let states: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["status"]["reason"].clone())
        .collect();
    // The caller's going away may have been seen before the kill.
    assert!(
        states.is_empty() || states == ["create_interrupted"],
        "{states:?}"
    );
    assert!(world.fake.plans().is_empty());
}

/// Kills at random moments of many creates: every answered create is known, nothing else runs.
#[tokio::test]
async fn kills_in_the_middle_of_creates_lose_no_promise() {
    let mut world = World::new().await;
    for round in 0..8_u64 {
        let mut answered = Vec::new();
        {
            let world = &world;
            let creates = (0..12).map(|_| async move {
                let call = world
                    .call("POST", "/v1/sandboxes")
                    .json(&request(&json!({})));
                call.try_send()
                    .await
                    .ok()
                    .filter(|answer| answer.status == 202)
            });
            let all = futures::future::join_all(creates);
            let pause = Duration::from_micros(300 * round);
            let mut all = std::pin::pin!(all);
            if let Ok(answers) = tokio::time::timeout(pause, &mut all).await {
                answered.extend(answers.into_iter().flatten());
            }
        }
        let answered: Vec<barchan_wire::id::SandboxId> = answered
            .iter()
            .map(|answer| answer.json()["id"].as_str().unwrap().parse().unwrap())
            .collect();
        world.kill().await;
        world.start().await.unwrap();
        for id in &answered {
            assert_eq!(world.state(id).await, "Running", "round {round}");
        }
        let list = world
            .call("GET", "/sandboxes?pageSize=200&state=running")
            .send()
            .await
            .json();
        let known = list["items"].as_array().unwrap().len();
        assert_eq!(world.fake.plans().len(), known, "round {round}");
        for plan in world.fake.plans() {
            world
                .call("DELETE", &format!("/sandboxes/{}", plan.id))
                .send()
                .await;
        }
    }
    assert!(world.fake.plans().is_empty());
}

#[tokio::test]
async fn two_servers_do_not_share_a_state_directory() {
    let mut world = World::new().await;
    let second = world.app().await;
    let Err(StartError::Site(SiteError::Held { holder, .. })) = second else {
        panic!("{second:?}")
    };
    assert_eq!(holder, std::process::id().to_string());
    world.kill().await;
    world.start().await.unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_listen_says_where_and_lets_go() {
    let first = World::new().await;
    let mut second = World::new().await;
    second.kill().await;
    let taken = first.address().port();
    let Err(StartError::Listen { place, .. }) = second.app_on(taken).await else {
        panic!("two servers on one port")
    };
    assert!(place.ends_with(&taken.to_string()), "{place}");
    second.start().await.unwrap();
}

#[tokio::test]
async fn a_stopping_server_finishes_what_is_under_way_and_leaves_sandboxes_alone() {
    let (guest, _) = guest::echo();
    let settings = "[server]\nshutdown_grace_s = 1\n";
    let mut world = World::with(&Set {
        settings,
        ..Set::guest(guest)
    })
    .await;
    let id = world.sandbox().await;
    let mut endless = world.inside(&id, 8080, "GET", "/drip").await.begin().await;
    let (say, said) = mpsc::channel::<Bytes>(1);
    let pieces = futures::stream::unfold(said, async |mut said| {
        let piece = said.recv().await?;
        Some((Ok(Frame::data(piece)), said))
    });
    let call = world.inside(&id, 8080, "POST", "/back").await;
    let mut willing = call.stream_body(StreamBody::new(pieces)).begin().await;
    let (socket, address) = (world.unix_socket(), world.address());
    let stopping = tokio::time::timeout(PATIENCE, world.stop());
    let finishing = async {
        until("the socket to go", async || !socket.exists()).await;
        until("nobody to listen", async || {
            TcpStream::connect(address).await.is_err()
        })
        .await;
        say.send(Bytes::from_static(b"last words")).await.unwrap();
        assert_eq!(willing.piece().await.unwrap(), "last words");
        drop(say);
        assert_eq!(willing.piece().await, None);
        while endless.piece().await.is_some() {}
    };
    let (stopped, ()) = tokio::join!(stopping, finishing);
    stopped.unwrap();
    assert_eq!(world.fake.plans().len(), 1);
    world.start().await.unwrap();
    assert_eq!(world.state(&id).await, "Running");
}

#[tokio::test]
async fn an_idle_private_server_leaves() {
    let mut world = World::with(&Set::settings("[server]\nidle_exit_s = 60\n")).await;
    let id = world.sandbox_with(&json!({"timeout": null})).await;
    for _ in 0..10 {
        world.hand.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.state(&id).await,
        "Running",
        "not while it has a sandbox"
    );
    world
        .call("DELETE", &format!("/sandboxes/{id}"))
        .send()
        .await;
    world.hand.advance(Duration::from_secs(59));
    assert_eq!(
        world.bare("GET", "/health").send().await.status,
        200,
        "asked for a moment ago"
    );
    let hand = world.hand.clone();
    let time = async {
        loop {
            hand.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = world.stopped() => {}
        () = time => {}
    }
    world.start().await.unwrap();
}
