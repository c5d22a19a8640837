//! Sandboxes that do their worst with what is copied.

use std::process::Command;

use barchan_runtime::{ErrorKind, Runtime};

use super::{World, is_able, new_id, order};

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_layer_is_copied_as_it_is_or_refused() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let deep = "import os\nfor _ in range({}):\n os.mkdir('d'); os.chdir('d')\nopen('f', 'w')";
    let python = |depth: u32| {
        let script = deep.replace("{}", &depth.to_string());
        format!("mkdir /data; cd /data; python3 -c \"{script}\"")
    };
    for (script, expected) in [
        (python(1000), Ok(())),
        (python(1500), Err("folders deep")),
        (
            "mkdir /data; for n in $(seq 20); do ln -s / /data/$n; ln -s .. /data/up$n; done"
                .to_owned(),
            Ok(()),
        ),
        (
            "mkdir /data; cd /data; echo x >f; for n in $(seq 3000); do ln f $n; done".to_owned(),
            Ok(()),
        ),
        // It moves all the time, and folders take each other's places.
        (
            "mkdir -p /data/a/b/c /data/z; cd /data; echo 1 >a/b/c/f; echo 2 >z/f; (while :; do \
             mv a/b z/b; ln -s / a/b; rm a/b; mv z/b a/b; mv z y; mv a z; mv y a; mv z y; mv a z; \
             mv y a; done) >/dev/null 2>&1 &"
                .to_owned(),
            Ok(()),
        ),
    ] {
        let (id, _) = world.after(&script, None).await;
        match (world.try_save(&id).await, expected) {
            (Ok((snapshot, _)), Ok(())) => {
                world.native.delete_snapshot(&snapshot).await.unwrap();
            }
            (Err(error), Err(words)) => {
                assert_eq!(error.kind, ErrorKind::SnapshotFailed);
                assert!(error.message.contains(words), "{error}");
            }
            (taken, _) => panic!("{script}: {taken:?}"),
        }
        world.native.delete(&id).await.unwrap();
        world.until_shelved(&[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_too_large_fails_and_leaves_nothing() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (id, _) = world.after("head -c 3000000 /dev/urandom >/f", None).await;
    let mut order = order(&id, &new_id());
    order.bytes_max = 2_000_000;
    let error = world.native.snapshot(order).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SnapshotFailed);
    assert!(error.message.contains("2000000 bytes"), "{error}");
    world.until_shelved(&[]).await;
}

/// A small file system at a path, until it is dropped.
struct Small(std::path::PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_it_and_leaves_nothing() {
    let world = World::new().await;
    if !is_able(&world) || !rustix::process::geteuid().is_root() {
        // Others cannot mount.
        return;
    }
    let (id, _) = world.after("head -c 30000000 /dev/urandom >/f", None).await;
    let shelf = world.shelf();
    std::fs::create_dir_all(&shelf).unwrap();
    let options = ["-t", "tmpfs", "-o", "size=20m", "tmpfs"];
    let mounted = Command::new("mount")
        .args(options)
        .arg(&shelf)
        .status()
        .unwrap();
    assert!(mounted.success());
    let small = Small(shelf);
    let error = world.try_save(&id).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SnapshotFailed);
    assert!(error.message.contains("no room left"), "{error}");
    world.until_shelved(&[]).await;
    drop(small);
    world.save(&id).await;
}
