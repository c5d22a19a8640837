//! `barchan cp --recursive`, in both directions.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::fake::{Fake, ID, Script};
use crate::program::Ran;

async fn cp(fake: &Fake, source: &str, destination: &str) -> Ran {
    fake.program(&["cp", "-r", source, destination])
        .output()
        .await
        .unwrap()
        .into()
}

/// What `tar` prints, run in a directory.
fn tar(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut tar = Command::new("tar");
    let ran = tar.args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    ran.stdout
}

/// Lets a directory in the sandbox hold this archive.
fn hold(fake: &Fake, path: &str, archive: Vec<u8>) {
    let mut seen = fake.seen.lock().unwrap();
    seen.files.insert(path.to_owned(), archive);
}

#[tokio::test]
async fn a_directory_goes_in_below_what_is_there() {
    let fake = Fake::start(Script::Hangs);
    let home = fake.home.path();
    fs::create_dir_all(home.join("folder/deep")).unwrap();
    fs::write(home.join("folder/deep/a.sh"), vec![b'q'; 400_000]).unwrap();
    fs::set_permissions(
        home.join("folder/deep/a.sh"),
        PermissionsExt::from_mode(0o751),
    )
    .unwrap();
    hold(&fake, "/there/", Vec::new());
    for (source, destination, path) in [
        ("folder", "/new", "/new"),
        ("folder", "/there", "/there/folder"),
        ("folder/", "/there/", "/there/folder"),
        ("folder/.", "/there", "/there"),
        ("folder", "", "./folder"),
    ] {
        let ran = cp(&fake, source, &format!("{ID}:{destination}")).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{source}");
        let called = format!("unpack {path} keep");
        assert_eq!(fake.calls().last(), Some(&called));
        let unpacked = home.join("unpacked.tar");
        fs::write(&unpacked, &fake.seen.lock().unwrap().files["unpacked"]).unwrap();
        let listed = tar(home, &["-tvf", "unpacked.tar"]);
        let listed = String::from_utf8(listed).unwrap();
        assert!(listed.contains("-rwxr-x--x"), "{listed}");
        assert!(listed.contains("deep/a.sh"), "{listed}");
        fs::remove_file(unpacked).unwrap();
    }
}

#[tokio::test]
async fn a_directory_comes_out_with_modes_and_times() {
    let fake = Fake::start(Script::Hangs);
    let home = fake.home.path();
    fs::create_dir_all(home.join("from/deep")).unwrap();
    fs::create_dir(home.join("there")).unwrap();
    fs::write(home.join("from/deep/file"), vec![b'q'; 3_000_000]).unwrap();
    let touched = Command::new("touch")
        .args(["-d", "@1000000000", "from/deep/file", "from/deep", "from"])
        .current_dir(home)
        .status();
    assert!(touched.unwrap().success());
    fs::set_permissions(home.join("from/deep"), PermissionsExt::from_mode(0o750)).unwrap();
    hold(&fake, "/data/", tar(&home.join("from"), &["-cf", "-", "."]));
    for (source, destination, lands) in [
        ("/data", "new", "new"),
        ("/data", "there", "there/data"),
        ("/data/", "there2", "there2"),
    ] {
        let ran = cp(&fake, &format!("{ID}:{source}"), destination).await;
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(0), ""),
            "{destination}"
        );
        let lands = home.join(lands);
        assert_eq!(fs::read(lands.join("deep/file")).unwrap().len(), 3_000_000);
        for (name, mode) in [("deep/file", 0o644), ("deep", 0o750), ("", 0o755)] {
            let found = lands.join(name).metadata().unwrap();
            assert_eq!(
                (found.mode() & 0o777, found.mtime()),
                (mode, 1_000_000_000),
                "{name}"
            );
        }
    }
}

/// Everything that a sandbox may send instead of its files.
#[tokio::test]
async fn a_hostile_archive_writes_nothing_outside() {
    let fake = Fake::start(Script::Hangs);
    let home = fake.home.path();
    let make = home.join("make");
    fs::create_dir_all(&make).unwrap();
    fs::write(make.join("a"), "x").unwrap();
    symlink("/etc", make.join("l")).unwrap();
    let large = fs::File::create(make.join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    let made = Command::new("mkfifo")
        .arg(make.join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let renamed = |to: &str| {
        let rule = format!("--transform=s,^a$,{to},");
        tar(&make, &["-cPf", "-", &rule, "a"])
    };
    let linked = tar(
        &make,
        &["-cPf", "-", "--transform=s,^a$,l/inside,", "l", "a"],
    );
    for (what, archive, part) in [
        (
            "absolute",
            renamed("/tmp/barchan-escape"),
            "begins at the root",
        ),
        ("upwards", renamed("../escape"), "leads upwards"),
        ("pipe", tar(&make, &["-cf", "-", "pipe"]), "pipe or device"),
        (
            "sparse",
            tar(&make, &["-cSf", "-", "large"]),
            "more than 68719476736 bytes",
        ),
        ("cut", renamed("b")[..700].to_vec(), "ends"),
        ("none", b"<html>".repeat(1000), "no tar archive"),
        ("broken", [&renamed("b")[..512], b"BREAK"].concat(), "broke"),
    ] {
        hold(&fake, "/data/", archive);
        let ran = cp(&fake, &format!("{ID}:/data"), "out").await;
        assert_eq!(ran.code, Some(1), "{what}");
        assert!(ran.stderr.contains(part), "{what}: {}", ran.stderr);
        let names: Vec<_> = fs::read_dir(home)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert!(names.iter().all(|it| it != "escape"), "{what}: {names:?}");
    }
    assert!(!Path::new("/tmp/barchan-escape").exists());
    // A link that leads out is left out, told in words that move no cursor, and not followed.
    hold(&fake, "/data/", linked);
    let ran = cp(&fake, &format!("{ID}:/data"), "linked").await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("l: it is a link that leads out"),
        "{}",
        ran.stderr
    );
    assert!(home.join("linked/l").metadata().unwrap().is_dir());
    assert_eq!(fs::read(home.join("linked/l/inside")).unwrap(), b"x");
}
