//! Images that want to have something mounted, or done, where a link of theirs leads.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use barchan_runtime::{ArchiveFault, ErrorKind, Runtime};

use super::row::is_root;
use crate::native::world::World;

/// Where something is mounted in every sandbox.
const PLACES: [&str; 5] = ["dev", "proc", "sys", "tmp", "usr"];
/// How such an image is refused: nothing is wrong with the host.
const AT_FAULT: ErrorKind = ErrorKind::Archive(ArchiveFault::Invalid);

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_has_a_link_for_a_place_is_refused() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let up = format!("../../../../../../../..{}", outside.path().display());
    let down = outside.path().to_str().unwrap();
    for place in PLACES {
        let world = World::new().await;
        // With a folder in that place, the same image is taken.
        let made = world.create("host").await.unwrap();
        world.native.delete(&made.id).await.unwrap();
        for target in [down, &up, "/proc/self/fd/4", "/proc/1/root"] {
            replace(&world, place, |path| symlink(target, path).unwrap());
            let made = world.create("host").await;
            let error = made.expect_err(&format!("{place} leads to {target}"));
            assert_eq!(error.kind, AT_FAULT, "{place} to {target}");
            assert!(world.native.list().await.unwrap().is_empty());
            let found = fs::read_dir(outside.path()).unwrap().count();
            assert_eq!(found, 0, "{place} to {target} made something on the host");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_has_a_file_for_a_place_is_refused() {
    for place in PLACES {
        let world = World::new().await;
        world.create("host").await.unwrap();
        replace(&world, place, |path| fs::write(path, "").unwrap());
        let error = world.create("host").await.unwrap_err();
        assert_eq!(error.kind, AT_FAULT, "{place}");
    }
}

/// Puts something else in the place of a folder of the host image's own layer, or of what this put
/// there before.
fn replace(world: &World, place: &str, with: impl Fn(&Path)) {
    let layers = fs::read_dir(world.state.path().join("images/layers")).unwrap();
    let mut replaced = 0;
    for layer in layers {
        let path = layer.unwrap().path().join(place);
        if fs::remove_dir(&path).is_ok() || fs::remove_file(&path).is_ok() {
            with(&path);
            replaced += 1;
        }
    }
    assert!(replaced > 0, "no layer has a folder {place}");
}

#[test]
fn a_mount_by_path_goes_where_such_a_link_leads() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = "mkdir root outside; ln -s ../outside root/dev; \
        mount -t tmpfs control root/dev; findmnt --noheadings --output TARGET --source control";
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let output = unshare
        .args(["sh", "-ec", script])
        .current_dir(&folder)
        .output()
        .unwrap();
    let mounted = String::from_utf8(output.stdout).unwrap();
    assert!(
        mounted.trim().ends_with("/outside"),
        "{mounted} {:?}",
        output.status
    );
}
