//! What the sandboxes of a tenant may have together.

use barchan_runtime::{EndReason, ErrorKind};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::world::{Answer, Set, World};

/// Half of what a tenant of these tests may have of everything.
fn half() -> Value {
    json!({"resourceLimits": {"cpu": "1", "memory": "1Gi", "disk": "1Gi"}})
}

fn quota(sandboxes: u64) -> Value {
    json!({
        "sandboxes": sandboxes, "cpuMillis": 2000, "memoryBytes": 2_147_483_648_u64,
        "diskBytes": 2_147_483_648_u64,
    })
}

async fn usage(world: &World, name: &str) -> Value {
    let path = format!("/x/tenants/{name}");
    world.call("GET", &path).send().await.json()["usage"].clone()
}

async fn delete(world: &World, made: &Answer) {
    let path = format!("/v1/sandboxes/{}", made.json()["id"].as_str().unwrap());
    assert_eq!(world.call("DELETE", &path).send().await.status, 204);
}

#[tokio::test]
async fn each_quota_has_its_code_and_says_how_much_is_used() {
    let world = World::new().await;
    let key = world.tenant("a", &quota(3)).await;
    let first = world.create_with(&key, &half()).await;
    assert_eq!(first.status, 202, "{first:?}");
    let limits = |cpu: &str, memory: &str, disk: &str| {
        let limits = json!({"cpu": cpu, "memory": memory, "disk": disk});
        json!({ "resourceLimits": limits })
    };
    for (changes, expected, told) in [
        (
            limits("1.001", "1Gi", "1Gi"),
            "403 QUOTA::CPU",
            "uses 1000 of 2000",
        ),
        (
            limits("1", "1025Mi", "1Gi"),
            "403 QUOTA::MEMORY",
            "1073741824 of 2147483648",
        ),
        (
            limits("1", "1Gi", "1025Mi"),
            "403 QUOTA::DISK",
            "1073741824 of 2147483648",
        ),
        // There is no default of memory, and nobody would know how much it is.
        (
            json!({"resourceLimits": {"cpu": "1", "disk": "1Gi"}}),
            "400 SANDBOX::INVALID_PARAMETER",
            "needs a limit",
        ),
        (limits("500m", "512Mi", "512Mi"), "202", ""),
        (limits("500m", "512Mi", "512Mi"), "202", ""),
        (
            limits("1m", "6Mi", "16Mi"),
            "403 QUOTA::SANDBOXES",
            "uses 3 of 3 sandboxes",
        ),
    ] {
        let answer = world.create_with(&key, &changes).await;
        assert_eq!(answer.code(), expected, "{changes}");
        assert!(answer.text().contains(told), "{answer:?}");
    }
    let whole = json!({
        "sandboxes": 3, "cpuMillis": 2000, "memoryBytes": 2_147_483_648_u64,
        "diskBytes": 2_147_483_648_u64,
    });
    assert_eq!(usage(&world, "a").await, whole);
    // The quota of one is nothing to others.
    let other = world.tenant("b", &quota(1)).await;
    assert_eq!(world.create_with(&other, &half()).await.status, 202);
    assert_eq!(world.create(&half()).await.status, 202);
}

/// However many ask at once, as many get one as may, and what failed takes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_hold_under_concurrent_creates_and_deletes() {
    let world = World::new().await;
    let key = world.tenant("a", &quota(2)).await;
    for round in 0..10 {
        if round % 2 == 1 {
            world.fake.fail("create", ErrorKind::StartFailed, 1);
        }
        let answers = join_all((0..16).map(|_| async { world.create_with(&key, &half()).await }));
        let answers = answers.await;
        let made: Vec<&Answer> = answers.iter().filter(|it| it.status == 202).collect();
        let failed = answers.iter().filter(|it| it.status == 500).count();
        let refused = answers
            .iter()
            .filter(|it| it.code().starts_with("403 QUOTA::"));
        assert_eq!(made.len() + failed + refused.count(), 16, "{answers:?}");
        assert_eq!(failed, round % 2);
        assert!(!made.is_empty() && made.len() <= 2, "{}", made.len());
        assert_eq!(usage(&world, "a").await["sandboxes"], json!(made.len()));
        join_all(made.iter().map(|made| delete(&world, made))).await;
        assert_eq!(usage(&world, "a").await["memoryBytes"], 0);
    }
}

#[tokio::test]
async fn what_is_being_made_counts_and_what_its_caller_left_does_not() {
    let world = World::new().await;
    let key = world.tenant("a", &quota(1)).await;
    world.fake.let_creates_through(false);
    let mut calling = tokio::task::JoinSet::new();
    let call = world.with_key(&key, "POST", "/v1/sandboxes");
    calling.spawn(call.json(&crate::world::request(&half())).try_send());
    crate::world::until("it is being made", async || {
        usage(&world, "a").await["sandboxes"] == 1
    })
    .await;
    let second = world.create_with(&key, &half()).await;
    assert_eq!(second.code(), "403 QUOTA::SANDBOXES");
    calling.shutdown().await;
    world.fake.let_creates_through(true);
    let listed = async || {
        world
            .with_key(&key, "GET", "/v1/sandboxes")
            .send()
            .await
            .json()
    };
    crate::world::until("it is taken or removed", async || {
        let items = listed().await["items"].clone();
        let is_made = items[0]["status"]["state"] == "Running";
        is_made || usage(&world, "a").await["sandboxes"] == 0
    })
    .await;
}

#[tokio::test]
async fn paused_ones_count_in_full_ended_ones_their_files_and_a_restart_changes_nothing() {
    let mut world = World::with(&Set::settings("")).await;
    let key = world.tenant("a", &quota(3)).await;
    let paused = world.create_with(&key, &half()).await;
    let id = paused.json()["id"].as_str().unwrap().to_owned();
    let pause = world.with_key(&key, "POST", &format!("/v1/sandboxes/{id}/pause"));
    assert_eq!(pause.send().await.status, 202);
    let ended = world.create_with(&key, &half()).await;
    let id = ended.json()["id"].as_str().unwrap().parse().unwrap();
    world.fake.end(&id, EndReason::Exit(0));
    world.await_state(&id, "Terminated").await;
    let expected = json!({
        "sandboxes": 2, "cpuMillis": 1000, "memoryBytes": 1_073_741_824,
        "diskBytes": 2_147_483_648_u64,
    });
    assert_eq!(usage(&world, "a").await, expected);
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(usage(&world, "a").await, expected);
    let more = world.create_with(&key, &half()).await;
    assert_eq!(more.code(), "403 QUOTA::DISK");
    delete(&world, &ended).await;
    let more = world.create_with(&key, &half()).await;
    assert_eq!(more.status, 202, "{more:?}");
    // A smaller quota takes nothing away, and lets nothing more be made.
    let terms = json!({"quota": {"sandboxes": 1}});
    let change = world.call("PUT", "/x/tenants/a").json(&terms);
    assert_eq!(change.send().await.status, 200);
    assert_eq!(usage(&world, "a").await["sandboxes"], 2);
    let more = world.create_with(&key, &half()).await;
    assert_eq!(more.code(), "403 QUOTA::SANDBOXES");
}

/// What is paused to disk gives its processor time and memory to others, and is resumed when there
/// is enough of both again.
#[tokio::test]
async fn ones_paused_to_disk_count_their_place_and_files_and_are_resumed_within_the_quota() {
    let mut world = World::new().await;
    let terms = json!({
        "sandboxes": 4, "cpuMillis": 2000, "memoryBytes": 2_147_483_648_u64,
        "diskBytes": 4_294_967_296_u64,
    });
    let key = world.tenant("a", &terms).await;
    let mut parked = Vec::new();
    for _ in 0..2 {
        let made = world.create_with(&key, &half()).await;
        parked.push(made.json()["id"].as_str().unwrap().to_owned());
    }
    for id in &parked {
        let path = format!("/v1/sandboxes/{id}/pause?to=disk");
        let pause = world.with_key(&key, "POST", &path).send().await;
        assert_eq!(pause.status, 202, "{pause:?}");
    }
    let resting = json!({
        "sandboxes": 2, "cpuMillis": 0, "memoryBytes": 0, "diskBytes": 2_147_483_648_u64,
    });
    assert_eq!(usage(&world, "a").await, resting);
    world.kill().await;
    world.start().await.unwrap();
    assert_eq!(usage(&world, "a").await, resting);
    let others = [
        world.create_with(&key, &half()).await,
        world.create_with(&key, &half()).await,
    ];
    let resume = async |id: &String| {
        let path = format!("/v1/sandboxes/{id}/resume");
        world.with_key(&key, "POST", &path).send().await
    };
    let refused = resume(&parked[0]).await;
    assert_eq!(refused.code(), "403 QUOTA::CPU");
    assert!(refused.text().contains("uses 2000 of 2000"), "{refused:?}");
    assert_eq!(world.state(&parked[0].parse().unwrap()).await, "Paused");
    delete(&world, &others[0]).await;
    // There is enough for one of them, however close to each other they ask.
    let answers = join_all(parked.iter().map(resume)).await;
    let resumed = answers.iter().filter(|it| it.status == 202).count();
    assert_eq!(resumed, 1, "{answers:?}");
    delete(&world, &others[1]).await;
    // What fails takes nothing.
    world.fake.fail("resume", ErrorKind::StartFailed, 1);
    let waits = usize::from(answers[0].status == 202);
    assert_eq!(resume(&parked[waits]).await.status, 500);
    assert_eq!(usage(&world, "a").await["cpuMillis"], 1000);
    assert_eq!(resume(&parked[waits]).await.status, 202);
    assert_eq!(usage(&world, "a").await["cpuMillis"], 2000);
}

/// A create with a named volume.
fn volume(claim: &str) -> Value {
    let pvc = json!({"claimName": claim, "storage": "16Mi"});
    json!({"volumes": [{"name": "v", "mountPath": "/m", "pvc": pvc}]})
}

/// A tenant sees what is the tenant's, and nothing tells of the rest.
#[tokio::test]
async fn lists_and_events_show_the_tenants_own() {
    let world = World::new().await;
    let own = world.tenant("a", &json!({})).await;
    let other = world.tenant("b", &json!({})).await;
    let mut events = world.with_key(&own, "GET", "/x/events").begin().await;
    assert_eq!(&*events.piece().await.unwrap(), b": watching\n\n");
    let foreign = [world.sandbox_of(&other).await, world.sandbox().await];
    let mine = world.sandbox_of(&own).await;
    let list = world.with_key(&own, "GET", "/v1/sandboxes").send().await;
    assert_eq!(list.json()["pagination"]["totalItems"], 1);
    assert_eq!(list.json()["items"][0]["id"], mine.as_str());
    let all = world.call("GET", "/v1/sandboxes").send().await;
    assert_eq!(all.json()["pagination"]["totalItems"], 3);
    let again = world.with_key(&own, "GET", "/x/events");
    let again = again.header("last-event-id", "0-0").begin().await;
    for mut stream in [events, again] {
        let mut told = String::new();
        while !told.contains("event: started") {
            let piece = stream.piece().await.unwrap();
            told.push_str(std::str::from_utf8(&piece).unwrap());
        }
        assert!(told.contains(mine.as_str()), "{told}");
        for id in &foreign {
            assert!(!told.contains(id.as_str()), "{told}");
        }
    }
    let report = world.call("GET", &format!("/x/sandboxes/{mine}"));
    assert_eq!(report.send().await.json()["tenant"], "a");
}

/// A tenant mounts what the operator made for the tenant, and nothing else.
#[tokio::test]
async fn volumes_are_their_tenants() {
    let settings = "[storage]\nallowed_host_paths = [\"/srv/sandboxes\"]\n";
    let world = World::with(&Set::settings(settings)).await;
    let own = world.tenant("a", &json!({})).await;
    let operators = world.sandbox_with(&volume("a--data")).await;
    world.sandbox_with(&volume("data")).await;
    let mine = world.create_with(&own, &volume("data")).await;
    assert_eq!(mine.status, 202, "{mine:?}");
    let mine = mine.json()["id"].as_str().unwrap().to_owned();
    let volumes = world.with_key(&own, "GET", "/x/volumes").send().await;
    let shown = volumes.json()["volumes"].clone();
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    let expected = (json!("data"), json!([mine]));
    assert_eq!(
        (shown[0]["name"].clone(), shown[0]["sandboxes"].clone()),
        expected
    );
    let mut plans = world.fake.plans().into_iter();
    let plan = plans.find(|plan| plan.id.as_str() == mine).unwrap();
    let mounted = format!("{:?}", plan.volumes);
    assert!(
        mounted.contains("a--data") && mounted.contains("new: None"),
        "{mounted}"
    );
    let remove = world
        .with_key(&own, "DELETE", "/x/volumes/data")
        .send()
        .await;
    assert_eq!(remove.code(), "409 VOLUME::IN_USE");
    for told in ["--", operators.as_str()] {
        assert!(!remove.text().contains(told), "{remove:?}");
    }
    let host = json!({"path": "/srv/sandboxes/a"});
    let host = json!({"volumes": [{"name": "v", "mountPath": "/m", "host": host}]});
    for (changes, expected) in [
        (volume("b--data"), "400 VOLUME::PVC_NOT_FOUND"),
        (volume("new"), "400 VOLUME::PVC_NOT_FOUND"),
        (host, "400 VOLUME::HOST_PATH_NOT_ALLOWED"),
        (json!({"extensions": {"poolRef": "*"}}), "403 ADMIN_ONLY"),
    ] {
        let answer = world.create_with(&own, &changes).await;
        assert_eq!(answer.code(), expected, "{changes}");
    }
}

/// The end of another's sandbox is not told either, and its commands are not answered again.
#[tokio::test]
async fn what_is_gone_stays_its_tenants() {
    let world = World::with(&Set::guest(crate::guest::echo().0)).await;
    let (own, other) = (
        world.tenant("a", &json!({})).await,
        world.tenant("b", &json!({})).await,
    );
    let id = world.sandbox_of(&own).await;
    let command = format!("/v1/sandboxes/{id}/proxy/44772/command");
    let run = |key: &str| {
        let call = world.with_key(key, "POST", &command);
        call.header("idempotency-key", "once").body("{}").send()
    };
    let first = run(&own).await;
    let foreign = run(&other).await;
    assert_eq!(foreign.code(), "404 DOCKER::SANDBOX_NOT_FOUND");
    let path = format!("/v1/sandboxes/{id}");
    let delete = world.with_key(&own, "DELETE", &path).send().await;
    assert_eq!(delete.status, 204);
    for (key, expected) in [(&own, "200"), (&other, "404 DOCKER::SANDBOX_NOT_FOUND")] {
        let report = world.with_key(key, "GET", &format!("/x/sandboxes/{id}"));
        assert_eq!(report.send().await.code(), expected);
        let gone = world.with_key(key, "GET", &path).send().await;
        assert_eq!(
            gone.text().contains("(killed)"),
            expected == "200",
            "{gone:?}"
        );
    }
    let again = run(&other).await;
    assert_eq!(again.code(), "404 DOCKER::SANDBOX_NOT_FOUND", "{first:?}");
}

#[tokio::test]
async fn a_disk_counts_once_for_as_long_as_somebody_shares_it() {
    let world = World::new().await;
    let key = world.tenant("a", &quota(9)).await;
    let source = world
        .create_with(
            &key,
            &json!({"resourceLimits": {"cpu": "100m", "memory": "64Mi", "disk": "512Mi"}}),
        )
        .await;
    let id = source.json()["id"].as_str().unwrap().to_owned();
    let disks = async || usage(&world, "a").await["diskBytes"].as_u64().unwrap() >> 20;
    let fork = |id: String| {
        let call = world.with_key(&key, "POST", &format!("/x/layers/{id}/fork"));
        async move {
            call.send().await.json()["items"][0]["id"]
                .as_str()
                .unwrap()
                .to_owned()
        }
    };
    let (first, second) = (fork(id.clone()).await, fork(id.clone()).await);
    assert_eq!(disks().await, 3 * 512);
    let third = fork(first.clone()).await;
    assert_eq!(disks().await, 4 * 512);
    let remove = async |id: &str| {
        let call = world.with_key(&key, "DELETE", &format!("/v1/sandboxes/{id}"));
        assert_eq!(call.send().await.status, 204);
    };
    remove(&id).await;
    assert_eq!(disks().await, 4 * 512, "two have its layers");
    remove(&second).await;
    remove(&first).await;
    // The third has its own disk and those of the two that it came of.
    assert_eq!(disks().await, 3 * 512);
    remove(&third).await;
    assert_eq!(disks().await, 0);
}
