//! The host's network and sockets, and what two sandboxes could share.

use std::time::Duration;

use barchan_runtime::Runtime;

use super::arena::Arena;
use super::row::{Host, Namespaces, Row, row};

const NETWORK: [Row; 5] = [
    row("reach_host:4", "ECONNREFUSED ENETUNREACH", Host),
    row(
        "reach_host:6",
        "ECONNREFUSED ENETUNREACH EADDRNOTAVAIL",
        Host,
    )
    .where_present(),
    row("reach_abstract_socket", "ECONNREFUSED", Host),
    row("reach_socket_file", "ENOENT", Host),
    row("see_interface", "held", Host).where_present(),
];

const NEIGHBOUR: [Row; 9] = [
    row("find_file:tmp", "ENOENT", Namespaces),
    row("find_file:dev/shm", "ENOENT", Namespaces),
    row("find_file:var/tmp", "ENOENT", Namespaces),
    row("find_object:segment", "ENOENT", Namespaces),
    row("find_object:queue", "ENOENT", Namespaces),
    row("find_object:semaphore", "ENOENT", Namespaces),
    row("find_object:posix queue", "ENOENT", Namespaces),
    row("find_listener", "ECONNREFUSED", Namespaces),
    row("find_neighbour", "held", Namespaces),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_network_is_out_of_reach() {
    Arena::new().await.check(&NETWORK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sandboxes_share_nothing() {
    let arena = Arena::new().await;
    let neighbour = arena.neighbour();
    let id = neighbour.id.clone();
    arena.world.native.create(neighbour).await.unwrap();
    let left = async {
        while !arena
            .world
            .native
            .logs(&id)
            .await
            .unwrap()
            .starts_with(b"left\n")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let left = tokio::time::timeout(Duration::from_secs(20), left).await;
    left.expect("the neighbour leaves nothing");
    arena.check(&NEIGHBOUR).await;
}
