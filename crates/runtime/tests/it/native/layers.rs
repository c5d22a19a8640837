//! Sealed layers of real sandboxes: what is in them, what is made of them, and who uses the files.

mod changes;
mod comparisons;
mod deaths;
mod full;
mod holders;
mod hostile;
mod model;
mod parking;

use std::time::Duration;

use barchan_runtime::{Layer, Limits, Origin, Plan, Runtime, SealOrder, Sealed, WhenHeld};
use barchan_wire::id::SandboxId;

use super::world::{World, plan};

/// Longest time for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether this host can seal layers at all: as root, of a version 2 hierarchy.
fn is_able(world: &World) -> bool {
    world.native.capabilities().layers
}

/// What a variable says how much of something is tried, or this.
fn setting(variable: &str, usual: u64) -> u64 {
    let asked = std::env::var_os(variable);
    asked.map_or(usual, |text| text.to_str().unwrap().parse().unwrap())
}

impl World {
    async fn try_seal(&self, sandbox: &SandboxId, when_held: WhenHeld) -> Sealed {
        let order = SealOrder {
            sandbox: sandbox.clone(),
            when_held,
            note: "a note".to_owned(),
            wait: PATIENCE,
        };
        self.native.seal(order).await.unwrap()
    }

    async fn seal(&self, sandbox: &SandboxId) -> Layer {
        match self.try_seal(sandbox, WhenHeld::Copy).await {
            Sealed::Layer(layer) => layer,
            Sealed::Held(holders) => panic!("{holders:?}"),
        }
    }

    /// What a sandbox made of a layer prints and is gone.
    async fn forked(&self, sandbox: &SandboxId, layer: u32, script: &str) -> String {
        let plan = plan("host", &["/bin/sh", "-c", script], Limits::default());
        let from = Some(Origin {
            sandbox: sandbox.clone(),
            layer,
        });
        let (_, log) = self.run_plan(Plan { from, ..plan }).await;
        log.trim_end().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_is_sealed_undone_and_forked() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let script = "cd /; n=$(cat /count 2>/dev/null || echo 0); echo $((n + 1)) > /count; \
                  echo \"has $(cat /count)\"; while :; do sleep 0.02; \
                  if [ -e /tmp/go ]; then rm /tmp/go; echo more > /more; echo wrote; fi; done";
    let plan = plan("host", &["/bin/sh", "-c", script], Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "has 1").await;
    let first = world.seal(&id).await;
    assert_eq!((first.number, first.parent, first.is_copied), (1, 0, false));
    let second = world.seal(&id).await;
    assert_eq!(
        (second.number, second.parent, second.is_copied),
        (2, 1, false)
    );
    assert_eq!(
        world
            .forked(&id, 1, "cat /count; ls -ld / | cut -c1-10")
            .await,
        "1\ndrwxr-xr-x"
    );
    assert_eq!(
        world.forked(&id, 0, "cat /count 2>&1 | tail -c 10").await,
        "directory"
    );
    world.native.undo(&id, 1).await.unwrap();
    world.told(&id, "has 2").await;
    assert_eq!(world.forked(&id, 1, "cat /count").await, "1");
    let third = world.seal(&id).await;
    assert_eq!((third.number, third.parent), (3, 1));
    assert_eq!(world.forked(&id, 3, "cat /count").await, "2");
    let listed = world.native.layers(&id).await.unwrap();
    assert_eq!(listed, [first, second, third]);
    world.native.delete(&id).await.unwrap();
}

/// One who stands in a folder of the root, sleeps, and looks by both names at what it wrote: the
/// path from where it stands, and the whole one.
const STANDS: &str = "mkdir -p deep/er; cd deep/er; n=0; while :; do n=$((n + 1)); \
    echo $n > mark || echo broken; [ \"$(cat /workspace/deep/er/mark)\" = $n ] || echo broken; \
    echo \"round $n.\"; sleep 0.05; done";

#[tokio::test(flavor = "multi_thread")]
async fn who_stands_in_a_folder_is_moved_with_it() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let plan = plan("host", &["/bin/sh", "-c", STANDS], Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    let mut exchanged = 0;
    for round in 1..200 {
        world.told(&id, &format!("round {round}.")).await;
        exchanged += u32::from(!world.seal(&id).await.is_copied);
        if exchanged > 3 {
            world.told(&id, &format!("round {}.", round + 4)).await;
            break;
        }
    }
    let log = world.native.logs(&id).await.unwrap();
    let log = String::from_utf8_lossy(&log);
    assert!(
        exchanged > 3 && !log.contains("broken"),
        "{exchanged}: {log}"
    );
    world.native.delete(&id).await.unwrap();
}

/// One who makes a file in each round, takes away an older one, and keeps a few.
const CHURNS: &str = "mkdir -p /d/e; cd /; n=0; while :; do n=$((n + 1)); echo $n > /d/e/$n; \
    ln /d/e/$n /d/link$n; [ $((n % 7)) = 0 ] || rm -f /d/e/$((n - 2)) /d/link$((n - 2)); \
    [ $((n % 9)) = 0 ] && rm -rf /d/e && mkdir /d/e; echo $n > /d/last; echo \"round $n.\"; \
    sleep 0.02; done";

/// What lies in the folder of [`CHURNS`].
const LISTS: &str = "cd /d && find . | sort && cat last && cat e/* link* 2>/dev/null";

#[tokio::test(flavor = "multi_thread")]
async fn many_layers_become_one_and_mean_the_same() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let plan = plan("host", &["/bin/sh", "-c", CHURNS], Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "round 1.").await;
    let mut exchanged = 0;
    let mut seen = Vec::new();
    while exchanged < 70 {
        let layer = world.seal(&id).await;
        exchanged += u32::from(!layer.is_copied);
        if exchanged == 20 || exchanged == 69 {
            seen.push((layer.number, world.forked(&id, layer.number, LISTS).await));
        }
    }
    // What a layer means does not depend on how many there are by now.
    for (layer, expected) in &seen {
        assert_eq!(world.forked(&id, *layer, LISTS).await, *expected, "{layer}");
    }
    let last = world.seal(&id).await.number;
    let expected = world.forked(&id, last, LISTS).await;
    assert!(expected.contains("last"), "{expected}");
    let stacked = "head -1 /proc/mounts | tr :, '\\n\\n' | grep -c '^lowerdir\\|^d0'";
    let stacked = world.forked(&id, last, stacked).await;
    assert!(
        stacked.parse::<u32>().unwrap() < 60,
        "{stacked} of {exchanged}"
    );
    let all: Vec<u32> = (1..last).collect();
    world.native.forget_layers(&id, &all).await.unwrap();
    assert_eq!(world.native.layers(&id).await.unwrap().len(), 1);
    assert_eq!(world.forked(&id, last, LISTS).await, expected);
    let snapshot = world.save(&id).await;
    let restored = world
        .restored(&snapshot, "cat /d/last; ls /d | head -3")
        .await;
    assert!(
        restored.contains("last") || restored.contains("link"),
        "{restored}"
    );
    world.native.delete(&id).await.unwrap();
}
