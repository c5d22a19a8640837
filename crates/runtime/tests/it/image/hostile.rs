//! Trees that a build may leave, and what must not become of them.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, getxattr, makedev, mknodat, setxattr};

use super::world::{Leaves, ONE_STEP, World};

async fn sealed(
    leave: impl Fn(&Path) + Send + Sync,
) -> Result<(World, std::path::PathBuf), String> {
    let world = World::new();
    let recipe = world.recipe(ONE_STEP);
    match world.build(&recipe, &Leaves(leave)).await {
        Ok(built) => {
            let layer = world.store.layer(&built.manifest.layers[0]);
            Ok((world, layer))
        }
        Err(error) => {
            assert!(world.leftovers().is_empty(), "{:?}", world.leftovers());
            assert!(world.resolve("x").is_err());
            Err(error.to_string())
        }
    }
}

#[tokio::test]
async fn a_hostile_tree_is_cleaned_or_refused() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "1").unwrap();
    let (_world, layer) = sealed(|upper| {
        symlink(outside.path(), upper.join("tmp")).unwrap();
        symlink("/etc/passwd", upper.join("link")).unwrap();
        fs::create_dir_all(upper.join("var/tmp/left")).unwrap();
        fs::create_dir_all(upper.join("run/build")).unwrap();
        mknodat(CWD, upper.join("socket"), FileType::Socket, Mode::RUSR, 0).unwrap();
        mknodat(CWD, upper.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(upper.join("setuid"), "").unwrap();
        fs::set_permissions(upper.join("setuid"), fs::Permissions::from_mode(0o6755)).unwrap();
        fs::create_dir(upper.join("closed")).unwrap();
        fs::write(upper.join("closed/f"), "").unwrap();
        fs::set_permissions(upper.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    })
    .await
    .unwrap();
    assert!(
        outside.path().join("kept").is_file(),
        "sealing went through a link"
    );
    assert_eq!(
        fs::read_link(layer.join("link")).unwrap(),
        Path::new("/etc/passwd")
    );
    assert!(!layer.join("socket").exists() && !layer.join("fifo").exists());
    assert!(!layer.join("var/tmp/left").exists() && !layer.join("run/build").exists());
    let mode = fs::metadata(layer.join("setuid"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert!(layer.join("closed/f").exists());
}

#[tokio::test]
async fn a_tree_too_deep_for_a_path_is_refused_and_removed() {
    let said = sealed(|upper| {
        let mut here =
            rustix::fs::openat(CWD, upper, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..40 {
            rustix::fs::mkdirat(&here, &name, Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, &name, rustix::fs::OFlags::DIRECTORY, Mode::empty())
                .unwrap();
        }
    })
    .await
    .err()
    .unwrap();
    assert!(said.contains("deeper than"), "{said}");
}

#[tokio::test]
async fn a_device_node_is_refused() {
    let probe = tempfile::tempdir().unwrap();
    let node = |path: &Path| {
        mknodat(
            CWD,
            path,
            FileType::CharacterDevice,
            Mode::RUSR,
            makedev(1, 3),
        )
    };
    if node(&probe.path().join("null")).is_err() {
        eprintln!("not root: no device node can be made here, nor by a build");
        return;
    }
    let said = sealed(|upper| node(&upper.join("null")).unwrap())
        .await
        .err()
        .unwrap();
    assert!(said.contains("/null is a device node"), "{said}");
}

#[tokio::test]
async fn whiteouts_and_opaque_folders_stay_and_count() {
    let opaque = c"user.overlay.opaque";
    let plain = |upper: &Path| fs::create_dir(upper.join("folder")).unwrap();
    let marked = |upper: &Path| {
        plain(upper);
        setxattr(upper.join("folder"), opaque, b"y", XattrFlags::empty()).unwrap();
        setxattr(
            upper.join("folder"),
            c"user.overlay.origin",
            b"handle",
            XattrFlags::empty(),
        )
        .unwrap();
    };
    let Ok((_one, first)) = sealed(plain).await else {
        panic!("refused")
    };
    let Ok((_two, second)) = sealed(marked).await else {
        panic!("refused")
    };
    assert_ne!(first.file_name(), second.file_name());
    let mut value = [0; 8];
    assert_eq!(
        getxattr(second.join("folder"), opaque, &mut value).unwrap(),
        1
    );
    assert!(getxattr(second.join("folder"), c"user.overlay.origin", &mut value).is_err());

    let whiteout = |upper: &Path| {
        let path = CString::new(upper.join("gone").to_str().unwrap()).unwrap();
        mknodat(
            CWD,
            path.as_c_str(),
            FileType::CharacterDevice,
            Mode::empty(),
            0,
        )
        .unwrap();
    };
    let Ok((_three, third)) = sealed(whiteout).await else {
        panic!("refused")
    };
    let found = fs::symlink_metadata(third.join("gone")).unwrap();
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(
        &found.file_type()
    ));
}

#[tokio::test]
async fn equal_trees_give_one_layer_whatever_their_dates() {
    let file = |upper: &Path| fs::write(upper.join("f"), "1").unwrap();
    let later = |upper: &Path| {
        file(upper);
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(5);
        fs::File::open(upper.join("f"))
            .unwrap()
            .set_modified(date)
            .unwrap();
    };
    let (_one, first) = sealed(file).await.unwrap();
    let (_two, second) = sealed(later).await.unwrap();
    let (_three, other) = sealed(|upper| fs::write(upper.join("f"), "2").unwrap())
        .await
        .unwrap();
    assert_eq!(first.file_name(), second.file_name());
    assert_ne!(first.file_name(), other.file_name());
}
