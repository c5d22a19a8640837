use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;
use crate::fake::Fake;
use crate::{EndReason, Limits, Phase};

/// More than the channel holds and the keeper remembers together.
const SANDBOXES: usize = 1_500;
/// Longest wait for all of them.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan() -> Plan {
    Plan {
        id: uuid::Uuid::new_v4().to_string().parse().unwrap(),
        image: "host".to_owned(),
        snapshot: None,
        from: None,
        entrypoint: vec!["tail".to_owned()],
        env: BTreeMap::new(),
        limits: Limits::default(),
        pre_start: None,
        periodic: Vec::new(),
        volumes: Vec::new(),
        gpus: None,
        trust: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_did_not_listen_hears_of_every_end() {
    let home = tempfile::tempdir().unwrap();
    let fake = Arc::new(Fake::new(home.path()));
    let (_folder, sockets) = watch::channel(home.path().to_owned());
    let (near, far) = pair().unwrap();
    let mut tasks = JoinSet::new();
    let runtime = Arc::clone(&fake) as Arc<dyn Runtime>;
    tasks.spawn(async move {
        let start = move || {
            let (runtime, sockets) = (Arc::clone(&runtime), sockets.clone());
            async move { Ok(Served { runtime, sockets }) }
        };
        let _ = serve(near, start, || Ok(String::new())).await;
    });
    let (remote, hearing) = Remote::new(far).unwrap();
    tokio::pin!(hearing);
    tokio::select! {
        started = remote.start() => started.unwrap(),
        () = &mut hearing => panic!("the keeper is gone"),
    }
    let mut events = remote.watch();
    let mut living = BTreeSet::new();
    for _ in 0..SANDBOXES {
        living.insert(fake.create(plan()).await.unwrap().id);
    }
    for id in &living {
        fake.end(id, EndReason::Exit(3));
    }
    let all_heard = async {
        while !living.is_empty() {
            let observed = events.recv().await.unwrap();
            if observed.phase == Phase::Ended(EndReason::Exit(3)) {
                living.remove(&observed.id);
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            () = all_heard => {}
            () = &mut hearing => panic!("the keeper is gone"),
        }
    });
    heard.await.expect("some ends are never heard of");
}

#[tokio::test]
async fn a_question_over_which_the_keeper_stumbles_is_answered() {
    let (near, far) = pair().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let start = || async { Err(strange()) };
        let _ = serve(near, start, || panic!("a fault of the program")).await;
    });
    let (remote, hearing) = Remote::new(far).unwrap();
    let asked = async {
        let settings = remote.settings().await.unwrap_err();
        assert_eq!(settings.kind, ErrorKind::Internal, "{settings}");
        // It is there for what comes after.
        let start = remote.start().await.unwrap_err();
        assert_eq!(start.message, strange().message);
    };
    let answered = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            () = asked => {}
            () = hearing => panic!("the keeper is gone"),
        }
    });
    answered.await.expect("there is no answer");
}
