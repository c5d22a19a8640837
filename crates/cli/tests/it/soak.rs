//! Sandboxes come and go for a long time; nothing may grow with their number.
//!
//! `BARCHAN_SOAK_SANDBOXES` sets how many; `make soak` runs 5,000.

use std::fs;

use barchan_testkit::leftovers;
use futures::{StreamExt, stream};
use rustix::process::Pid;

use crate::world::{World, echo, request};

/// Sandboxes that live at once.
const AT_ONCE: usize = 4;
/// Sandboxes before the first look, so that caches are warm and pools are full.
const WARM_UP: usize = 40;
/// How much larger a program's own memory may be at the end, in KiB.
const GROWTH_KIB_MAX: u64 = 4096;
/// How many more descriptors a program may have open at the end.
const GROWTH_DESCRIPTORS_MAX: usize = 8;

/// Open descriptors and private memory in KiB of a process.
fn size_of(pid: Pid) -> (usize, u64) {
    let pid = pid.as_raw_nonzero();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let dirty = rollup
        .lines()
        .filter(|line| line.starts_with("Private_Dirty:"));
    let kib = dirty
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    (open, kib)
}

async fn use_up(world: &World, sandboxes: usize) {
    let client = &world.client();
    let lives = (0..sandboxes).map(|_| async move {
        let made = client.create(&request()).await.unwrap();
        assert_eq!(echo(client, &made.id).await.as_deref(), Some("alive\n"));
        client.delete(&made.id).await.unwrap();
    });
    stream::iter(lives)
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<()>>()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_grows_with_the_number_of_sandboxes() {
    let sandboxes = std::env::var_os("BARCHAN_SOAK_SANDBOXES");
    let sandboxes = sandboxes
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(150);
    let mut world = World::new().await;
    use_up(&world, WARM_UP).await;
    let programs = ["server", "launcher"].map(|who| (who, world.pid_of(who).unwrap()));
    let before = programs.map(|(_, pid)| size_of(pid));
    use_up(&world, sandboxes).await;
    for ((who, pid), (open, kib)) in programs.into_iter().zip(before) {
        let (open_now, kib_now) = size_of(pid);
        println!("{who}: {open} → {open_now} descriptors, {kib} → {kib_now} KiB");
        assert!(
            open_now <= open + GROWTH_DESCRIPTORS_MAX,
            "{who}: {open} → {open_now}"
        );
        assert!(
            kib_now <= kib + GROWTH_KIB_MAX,
            "{who}: {kib} → {kib_now} KiB"
        );
    }
    world.stop().await;
    let left = leftovers::of(&world.state());
    assert!(left.is_empty(), "{left:#?}");
}
