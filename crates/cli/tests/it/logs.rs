//! Logs are an aside: no trouble with them is one of a sandbox.

use barchan_client::Filter;

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
