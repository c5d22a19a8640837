//! Names, removal, and what a crash leaves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use barchan_runtime::image::{Aliases, ImageError, LoadedRecipe, Store};

use super::world::{Leaves, ONE_STEP, World, names};

fn aliases() -> Aliases {
    Aliases::new([("opensandbox/code-interpreter:*", vec!["x", "host"])]).unwrap()
}

#[tokio::test]
async fn an_alias_leads_to_the_first_image_that_is_there() {
    let world = World::new();
    let resolve = || {
        world
            .store
            .resolve("opensandbox/code-interpreter:v1.1.0", &aliases())
    };
    assert_eq!(resolve().unwrap().name, "host");
    world
        .build(&world.recipe(ONE_STEP), &Leaves(|_: &Path| {}))
        .await
        .unwrap();
    assert_eq!(resolve().unwrap().name, "x");
}

#[test]
fn an_unknown_name_says_what_to_do() {
    let world = World::new();
    let hostile = "../../etc/passwd\0\x1b[31m".to_owned() + &"x".repeat(5_000);
    for name in [
        "nonesuch:latest",
        "data-science",
        "../host",
        "",
        "a/b",
        "HOST",
        &hostile,
    ] {
        let error = world.resolve(name).unwrap_err();
        assert_eq!(error.code(), "image_unknown", "{name:?}");
        let said = error.to_string();
        assert!(
            said.contains("barchan image build") && said.len() < 600,
            "{said}"
        );
        assert!(!said.contains(['\0', '\x1b']), "{said:?}");
    }
    let unbuilt = Aliases::new([("python:*", ["data-science"])]).unwrap();
    let said = world
        .store
        .resolve("python:3.12", &unbuilt)
        .unwrap_err()
        .to_string();
    assert!(said.contains("barchan image build data-science"), "{said}");
}

#[tokio::test]
async fn an_image_in_use_stays_and_a_removed_one_takes_its_layers_along() {
    let world = World::new();
    let file = |upper: &Path| fs::write(upper.join("f"), "1").unwrap();
    let built = world
        .build(&world.recipe(ONE_STEP), &Leaves(file))
        .await
        .unwrap()
        .manifest;
    let in_use = BTreeSet::from([built.digest.clone()]);
    assert_eq!(
        world.store.rm("x", &in_use).unwrap_err().code(),
        "image_in_use"
    );
    assert!(world.resolve("x").is_ok());

    world
        .store
        .rm("x", &BTreeSet::from([built.layers[0].clone()]))
        .unwrap();
    assert_eq!(world.resolve("x").unwrap_err().code(), "image_unknown");
    assert!(
        world.layers().contains(&built.layers[0]),
        "a sandbox still stands on it"
    );
    assert_eq!(world.store.gc(&BTreeSet::new()).unwrap().layers, 1);
    assert!(!world.layers().contains(&built.layers[0]));
    assert!(world.resolve("host").is_ok());
}

#[tokio::test]
async fn a_layer_that_two_images_share_stays_for_the_other() {
    let world = World::new();
    let file = |upper: &Path| fs::write(upper.join("f"), "1").unwrap();
    for name in ["x", "y"] {
        let text = ONE_STEP.replace("'x'", &format!("'{name}'"));
        world
            .build(&world.recipe(&text), &Leaves(file))
            .await
            .unwrap();
    }
    assert_eq!(world.layers().len(), 2, "the host's and theirs");
    world.store.rm("x", &BTreeSet::new()).unwrap();
    assert!(
        world
            .resolve("y")
            .unwrap()
            .layers
            .iter()
            .all(|layer| layer.is_dir())
    );
    let listed: Vec<_> = world
        .store
        .list()
        .unwrap()
        .into_iter()
        .map(|image| image.name)
        .collect();
    assert_eq!(listed, ["host", "y"]);
}

#[test]
fn the_host_image_and_unknown_ones_cannot_be_removed() {
    let world = World::new();
    assert_eq!(
        world.store.rm("host", &BTreeSet::new()).unwrap_err().code(),
        "image_in_use"
    );
    assert_eq!(
        world
            .store
            .rm("nonesuch", &BTreeSet::new())
            .unwrap_err()
            .code(),
        "image_unknown"
    );
    assert_eq!(
        world.store.rm("../x", &BTreeSet::new()).unwrap_err().code(),
        "image_name"
    );
}

#[tokio::test]
async fn what_a_killed_build_left_is_removed_by_the_next_open() {
    let world = World::new();
    world
        .build(&world.recipe(ONE_STEP), &Leaves(|_: &Path| {}))
        .await
        .unwrap();
    let root = world.folder.path().join("images");
    fs::create_dir_all(root.join("tmp/build-dead/scratch/upper/deep")).unwrap();
    fs::write(root.join("tmp/build-dead.lock"), "").unwrap();
    fs::create_dir_all(root.join("tmp/gone-layer/etc")).unwrap();
    fs::write(root.join("images/.x.json.123.new"), "{").unwrap();
    Store::open(&root).unwrap();
    assert_eq!(names(&root.join("tmp")), BTreeSet::new());
    assert_eq!(
        names(&root.join("images")),
        BTreeSet::from(["x.json".to_owned()])
    );
    assert!(world.resolve("x").is_ok());
}

#[tokio::test]
async fn an_open_leaves_a_build_at_work_alone() {
    let world = World::new();
    let root = world.folder.path().join("images");
    let reopen = |upper: &Path| {
        fs::write(upper.join("f"), "1").unwrap();
        Store::open(&root).unwrap();
    };
    let built = world
        .build(&world.recipe(ONE_STEP), &Leaves(reopen))
        .await
        .unwrap();
    assert!(
        world
            .store
            .layer(&built.manifest.layers[0])
            .join("f")
            .is_file()
    );
    assert_eq!(world.leftovers(), BTreeSet::new());
}

#[tokio::test]
async fn a_broken_manifest_is_named_and_a_build_replaces_it() {
    let world = World::new();
    let recipe = world.recipe(ONE_STEP);
    world.build(&recipe, &Leaves(|_: &Path| {})).await.unwrap();
    let path = world.folder.path().join("images/images/x.json");
    fs::write(&path, "{ half").unwrap();
    let error = world.resolve("x").unwrap_err();
    assert!(matches!(&error, ImageError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("x.json"), "{error}");
    world.build(&recipe, &Leaves(|_: &Path| {})).await.unwrap();
    assert!(world.resolve("x").is_ok());
}

#[test]
fn a_recipe_that_is_not_there_is_named() {
    let error = LoadedRecipe::load("/nonesuch/x.toml").unwrap_err();
    assert_eq!(error.code(), "image_recipe");
}
