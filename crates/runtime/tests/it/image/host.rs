//! The image `host`: what it shows of this machine, and what it does not.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use barchan_runtime::image::{Aliases, Store};

use super::overlay_builder::OverlayBuilder;
use super::world::{World, names};

/// A small system with secrets in all the wrong places.
fn machine(merged: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), text).unwrap();
    };
    for path in [
        "usr/bin/sh",
        "usr/bin/editor.real",
        "usr/bin/python3.12",
        "usr/share/ca/one.crt",
    ] {
        file(path, "");
    }
    file("usr/lib/os-release", "ID=test\n");
    file("var/lib/dpkg/status", "Package: a\n");
    file("etc/ssl/certs/ca-certificates.crt", "BUNDLE");
    file("etc/fonts/fonts.conf", "<fonts/>");
    for secret in [
        "etc/shadow",
        "etc/hostname",
        "etc/ssl/private/key.pem",
        "etc/ssl/certs/own.pem",
        "root/.netrc",
        "home/me/x",
        "var/lib/db",
    ] {
        file(secret, "HOST-SECRET");
    }
    file("etc/fonts/closed.conf", "HOST-SECRET");
    let closed = fs::Permissions::from_mode(0o600);
    fs::set_permissions(root.path().join("etc/fonts/closed.conf"), closed).unwrap();
    let link = |to: &str, path: &str| {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        symlink(to, root.path().join(path)).unwrap();
    };
    link("/usr/bin/editor.real", "etc/alternatives/editor");
    link("/etc/shadow", "etc/alternatives/stolen");
    link("/home/me/x", "etc/alternatives/dangling");
    link("/usr/share/ca/one.crt", "etc/ssl/certs/one.pem");
    link("python3.12", "usr/bin/python3");
    link("/etc/alternatives/editor", "usr/bin/editor");
    for name in ["bin", "sbin", "lib", "lib64"] {
        if merged {
            link(&format!("usr/{name}"), name)
        } else {
            file(&format!("{name}/x"), "")
        }
    }
    root
}

fn open(machine: &Path) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_with_host(&folder.path().join("images"), machine).unwrap();
    (folder, store)
}

fn skeleton(store: &Store) -> PathBuf {
    store.resolve("host", &Aliases::default()).unwrap().layers[0].clone()
}

fn all_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn nothing_of_the_owner_is_in_the_skeleton() {
    let machine = machine(true);
    let (_folder, store) = open(machine.path());
    let skeleton = skeleton(&store);
    for path in all_files(&skeleton) {
        if !path.is_symlink() {
            let text = fs::read(&path).unwrap();
            assert!(
                !text.windows(11).any(|part| part == b"HOST-SECRET"),
                "{}",
                path.display()
            );
        }
    }
    let inside = names(&skeleton.join("etc"));
    assert!(!inside.contains("shadow") && !skeleton.join("etc/ssl/private").exists());
    assert_eq!(
        names(&skeleton.join("etc/alternatives")),
        ["editor".to_owned()].into()
    );
    assert_eq!(names(&skeleton.join("root")), [].into());
}

#[test]
fn what_programs_need_is_there() {
    let machine = machine(true);
    let (_folder, store) = open(machine.path());
    let skeleton = skeleton(&store);
    let read = |path: &str| fs::read_to_string(skeleton.join(path)).unwrap();
    assert_eq!(read("etc/ssl/certs/ca-certificates.crt"), "BUNDLE");
    assert_eq!(
        fs::read_link(skeleton.join("etc/ssl/certs/one.pem")).unwrap(),
        Path::new("/usr/share/ca/one.crt")
    );
    assert_eq!(read("etc/fonts/fonts.conf"), "<fonts/>");
    assert!(
        read("etc/passwd").contains("nobody:x:65534:65534")
            && read("etc/group").contains("nogroup:x:65534")
    );
    assert!(read("etc/hosts").contains("localhost"));
    assert_eq!(
        fs::read_link(skeleton.join("etc/os-release")).unwrap(),
        Path::new("../usr/lib/os-release")
    );
    for (path, mode) in [
        ("tmp", 0o1777),
        ("var/tmp", 0o1777),
        ("workspace", 0o1777),
        ("blobs", 0o1777),
        ("root", 0o700),
        ("proc", 0o755),
    ] {
        let found = fs::metadata(skeleton.join(path)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
        assert_eq!(found.uid(), rustix::process::geteuid().as_raw(), "{path}");
    }
}

#[test]
fn system_folders_are_as_the_host_has_them() {
    let (merged, split) = (machine(true), machine(false));
    let (_folder, store) = open(merged.path());
    let image = store.resolve("host", &Aliases::default()).unwrap();
    let targets: Vec<_> = image
        .binds
        .iter()
        .map(|bind| bind.target.to_str().unwrap())
        .collect();
    assert_eq!(targets, ["/usr"]);
    assert_eq!(image.binds[0].source, merged.path().join("usr"));
    assert_eq!(
        fs::read_link(image.layers[0].join("lib64")).unwrap(),
        Path::new("usr/lib64")
    );

    let (_folder, store) = open(split.path());
    let image = store.resolve("host", &Aliases::default()).unwrap();
    let targets: Vec<_> = image
        .binds
        .iter()
        .map(|bind| bind.target.to_str().unwrap())
        .collect();
    assert_eq!(targets, ["/usr", "/bin", "/lib", "/lib64", "/sbin"]);
    for target in targets {
        assert!(
            image.layers[0].join(&target[1..]).is_dir(),
            "{target} needs a mount point"
        );
    }
}

#[test]
fn a_changed_host_gives_a_new_digest_and_an_unchanged_one_the_same() {
    let machine = machine(true);
    let (folder, store) = open(machine.path());
    let digest = |store: &Store| store.resolve("host", &Aliases::default()).unwrap().digest;
    let first = digest(&store);
    let again = Store::open_with_host(&folder.path().join("images"), machine.path()).unwrap();
    assert_eq!(first, digest(&again));
    fs::write(
        machine.path().join("var/lib/dpkg/status"),
        "Package: a\nPackage: b\n",
    )
    .unwrap();
    let second = digest(&store);
    assert_ne!(first, second);
    assert_eq!(second, digest(&again), "another process sees it too");
    fs::write(
        machine.path().join("etc/ssl/certs/ca-certificates.crt"),
        "BUNDLE 2",
    )
    .unwrap();
    assert_ne!(second, digest(&store));
    assert!(!store.list().unwrap()[0].pinned);
}

#[test]
fn a_skeleton_that_was_collected_is_made_again() {
    let machine = machine(true);
    let (_folder, store) = open(machine.path());
    let before = skeleton(&store);
    fs::rename(&before, before.with_extension("gone")).unwrap();
    assert_eq!(skeleton(&store), before);
    assert!(before.join("etc/passwd").is_file());
}

/// On this very machine, in a root of its own.
#[tokio::test]
async fn programs_of_this_host_run_in_it() {
    let world = World::new();
    let run = r#"
name = "x"
base = "host"
run = [
    "test \"$(id -un)\" = root",
    "for link in /etc/alternatives/*; do test -e $link || { echo $link dangles; exit 1; }; done",
    "test ! -e /etc/shadow && test -z \"$(find /home/user /root /opt/opensandbox -mindepth 1)\"",
    "ls -d /proc /sys /dev /workspace /large_tool_results /conversation_history /blobs /srv /mnt",
    "if touch /usr/x; then exit 1; fi",
    "getent passwd nobody && getent group nogroup",
    "test $(command -v python3) = /opt/venv/bin/python3",
    "python3 -c 'import sys; assert sys.prefix == \"/opt/venv\"'",
    """python3 -c 'import ssl
assert ssl.create_default_context().cert_store_stats()[\"x509_ca\"] > 50'""",
]
"#;
    world
        .build(&world.recipe(run), &OverlayBuilder)
        .await
        .unwrap();
}
