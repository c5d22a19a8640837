//! Whole builds.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use barchan_runtime::image::{self, ImageError};

use super::overlay_builder::OverlayBuilder;
use super::world::{Leaves, ONE_STEP, World};

#[tokio::test]
async fn files_lines_and_settings_come_into_the_image() {
    let world = World::new();
    fs::write(world.folder.path().join("beside"), "beside\n").unwrap();
    let recipe = world.recipe(
        r##"
name = "x"
base = "host"
path = ["/opt/x/bin"]
entrypoint = ["/opt/x/bin/start", "now"]
run = [
    "cat /opt/x/data > /opt/x/copy",
    "tool >> /opt/x/copy",
    "echo $COLOUR >> /opt/x/copy",
    "rm -rf /srv",
]
files = [
    { path = "/opt/x/data", source = "beside" },
    { path = "/opt/x/bin/tool", text = "#!/bin/sh\necho tool\n", mode = 0o755 },
]
env = { COLOUR = "sand" }
"##,
    );
    let built = world.build(&recipe, &OverlayBuilder).await.unwrap();
    assert!(!built.cached && !built.manifest.pinned && built.manifest.on_host);
    let image = world.resolve("x").unwrap();
    assert_eq!(
        fs::read_to_string(image.layers[0].join("opt/x/copy")).unwrap(),
        "beside\ntool\nsand\n"
    );
    assert!(
        fs::symlink_metadata(image.layers[0].join("srv")).is_ok(),
        "the removal is recorded"
    );
    assert_eq!(image.layers.len(), 2);
    assert_eq!(image.binds, world.resolve("host").unwrap().binds);
    assert!(
        image
            .path
            .starts_with("/opt/x/bin:/opt/venv/bin:/usr/local/sbin:"),
        "{}",
        image.path
    );
    assert_eq!(image.env["COLOUR"], "sand");
    assert_eq!(image.entrypoint, ["/opt/x/bin/start", "now"]);
    let seen = world.seen.lock().unwrap();
    assert_eq!(
        seen.last().map(|p| (p.step, p.of, p.message.as_str())),
        Some((7, 7, "sealing the layer"))
    );
    assert!(world.leftovers().is_empty());
}

#[tokio::test]
async fn an_image_on_an_image_has_all_their_layers() {
    let world = World::new();
    let lower = "name='lower'\nbase='host'\nrun=['echo one > /srv/f']\nenv={A='1', B='1'}\n\
                 entrypoint=['/a']";
    world
        .build(&world.recipe(lower), &OverlayBuilder)
        .await
        .unwrap();
    let upper = "name='upper'\nbase='lower'\nrun=['cat /srv/f /srv/f > /srv/g']\nenv={B='2'}";
    world
        .build(&world.recipe(upper), &OverlayBuilder)
        .await
        .unwrap();
    let image = world.resolve("upper").unwrap();
    assert_eq!(image.layers.len(), 3);
    assert_eq!(
        fs::read_to_string(image.layers[0].join("srv/g")).unwrap(),
        "one\none\n"
    );
    assert_eq!(
        (image.env["A"].as_str(), image.env["B"].as_str()),
        ("1", "2")
    );
    assert_eq!(image.entrypoint, ["/a"]);
    world.store.rm("lower", &[].into()).unwrap();
    assert_eq!(world.resolve("upper").unwrap(), image);
}

#[tokio::test]
async fn an_unknown_base_says_what_to_build_first() {
    let world = World::new();
    let recipe = world.recipe("name='x'\nbase='nonesuch'");
    let said = world
        .build(&recipe, &OverlayBuilder)
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("barchan image build nonesuch"), "{said}");
}

#[tokio::test]
async fn a_recipe_without_steps_is_its_base_under_another_name() {
    let world = World::new();
    let built = world
        .build("minimal", &Leaves(|_: &Path| panic!("nothing to run")))
        .await
        .unwrap();
    assert_eq!(built.manifest.layers, [] as [&str; 0]);
    assert_eq!(
        world.resolve("minimal").unwrap().layers,
        world.resolve("host").unwrap().layers
    );
}

#[tokio::test]
async fn an_equal_build_is_not_done_again() {
    let world = World::new();
    let count = AtomicUsize::new(0);
    let builder = Leaves(|_: &Path| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let recipe = world.recipe(ONE_STEP);
    for (cached, runs) in [(false, 1), (true, 1)] {
        assert_eq!(world.build(&recipe, &builder).await.unwrap().cached, cached);
        assert_eq!(count.load(Ordering::SeqCst), runs);
    }
    let mut fresh = world.request(&recipe);
    fresh.fresh = true;
    assert!(
        !image::build(&world.store, &fresh, &builder)
            .await
            .unwrap()
            .cached
    );
    let changed = world.recipe(&ONE_STEP.replace("true", "true # more"));
    assert!(!world.build(&changed, &builder).await.unwrap().cached);
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn equal_builds_at_once_run_once() {
    let world = World::new();
    let count = Arc::new(AtomicUsize::new(0));
    let recipe = world.recipe(ONE_STEP);
    let builds = (0..6).map(|_| async {
        let count = Arc::clone(&count);
        let builder = Leaves(move |_: &Path| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        world.build(&recipe, &builder).await.unwrap()
    });
    let built = futures::future::join_all(builds).await;
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(built.iter().filter(|built| built.cached).count(), 5);
}

#[tokio::test]
async fn a_failing_step_is_named_with_what_it_said_and_leaves_nothing() {
    let world = World::new();
    let recipe =
        world.recipe("name='x'\nbase='host'\nrun=['true', 'echo why it failed >&2; exit 7']");
    let error = world.build(&recipe, &OverlayBuilder).await.unwrap_err();
    let said = error.to_string();
    assert!(
        matches!(error, ImageError::Step { step: 2, of: 2, .. }),
        "{said}"
    );
    assert!(
        said.contains("why it failed") && said.contains("running echo why"),
        "{said}"
    );
    assert!(world.leftovers().is_empty());
    assert_eq!(world.resolve("x").unwrap_err().code(), "image_unknown");
}

#[tokio::test]
async fn a_build_that_is_given_up_leaves_nothing() {
    let world = World::new();
    let recipe = world.recipe("name='x'\nbase='host'\nrun=['sleep 1000']");
    let request = world.request(&recipe);
    {
        let mut build = Box::pin(image::build(&world.store, &request, &OverlayBuilder));
        let started = async {
            while world.seen.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { _ = &mut build => panic!("ended"), () = started => {} }
    }
    assert!(world.leftovers().is_empty(), "{:?}", world.leftovers());
    assert_eq!(world.layers().len(), 1, "the host's");
}
