//! Logs are an aside: no trouble with them is one of a sandbox.

use barchan_client::Filter;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use crate::world::{World, echo, request};

/// Every part of the server logs here, and none of it may end for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let mut world = World::with_full_log().await;
    let client = world.client();
    for _ in 0..3 {
        let made = client.create(&request()).await.unwrap();
        assert_eq!(echo(&client, &made.id).await.as_deref(), Some("alive\n"));
        client.delete(&made.id).await.unwrap();
    }
    assert!(client.list(&Filter::default()).await.unwrap().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_cannot_write_its_log_lives_on() {
    let mut world = World::with_full_log().await;
    let client = world.client();
    let kept = client.create(&request()).await.unwrap();
    let launcher = world.pid_of("launcher").unwrap();
    // It has something to say: that it may open no more files.
    let few = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Nofile)
    };
    let before = prlimit(Some(launcher), Resource::Nofile, few).unwrap();
    for _ in 0..8 {
        let _ = client.create(&request()).await;
    }
    prlimit(Some(launcher), Resource::Nofile, before).unwrap();
    assert_eq!(world.pid_of("launcher"), Some(launcher));
    assert_eq!(echo(&client, &kept.id).await.as_deref(), Some("alive\n"));
    client.delete(&kept.id).await.unwrap();
    world.stop().await;
}
