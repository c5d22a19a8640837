//! Ways out of a volume that lead nowhere.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barchan_runtime::{EndReason, ErrorKind, RuntimeError, VolumeFault};

use super::{Place, fault, host, named, part, with};

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_lead_out_of_the_allowed_folders_are_refused() {
    let place = Place::new().await;
    let outside = place.at("outside").canonicalize().unwrap();
    symlink(&outside, place.at("allowed/link")).unwrap();
    symlink("../../outside", place.at("allowed/data/relative")).unwrap();
    fs::create_dir(place.at("allowed-evil")).unwrap();
    let _socket = UnixListener::bind(place.at("allowed/socket")).unwrap();
    let state = place.world.state.path().to_owned();
    for path in [
        outside.clone(),
        place.at("allowed/link"),
        place.at("allowed/link/secret"),
        place.at("allowed/data/relative"),
        place.at("allowed-evil"),
        place.at("allowed/socket"),
        place.at(""),
        Path::new("/").to_owned(),
        Path::new("/etc").to_owned(),
        state,
    ] {
        let refused = place.refused(vec![host(&path)]).await;
        assert_eq!(
            refused,
            fault(VolumeFault::HostPathNotAllowed),
            "{}",
            path.display()
        );
    }
    let out = part(host(&place.at("allowed/data")), "relative");
    assert_eq!(place.refused(vec![out]).await, fault(VolumeFault::SubPath));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_volume_is_no_way_out_of_it() {
    let place = Place::new().await;
    let outside = place.at("outside").canonicalize().unwrap();
    let script = format!(
        "ln -s {0} /v/absolute; ln -s ../../../../../../../../..{0} /v/relative; ln -s . /v/self; \
         ln -s /proc/self/root /v/magic; mkfifo /v/pipe",
        outside.display()
    );
    place.says(&script, vec![named("n")]).await;
    for path in [
        "absolute",
        "absolute/secret",
        "relative",
        "relative/new",
        "self",
        "magic",
        "magic/etc",
        "pipe",
        "../x",
    ] {
        let refused = place.refused(vec![part(named("n"), path)]).await;
        let invalid = path.starts_with("..") && refused == ErrorKind::Internal;
        assert!(
            invalid || refused == fault(VolumeFault::SubPath),
            "{path}: {refused:?}"
        );
    }
    assert!(!place.at("outside/new").exists());
}

/// The server looks where a path leads, and then the launcher opens it: in between somebody else
/// may be quick.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_swapped_for_a_link_is_mounted_as_the_folder_or_not_at_all() {
    let place = Place::new().await;
    let outside = place.at("outside").canonicalize().unwrap();
    let (folder, spare) = (place.at("allowed/data"), place.at("allowed/spare"));
    symlink(&outside, &spare).unwrap();
    let swapping = Arc::new(AtomicBool::new(true));
    let (going, ours, other) = (Arc::clone(&swapping), folder.clone(), spare);
    let swapper = std::thread::spawn(move || {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        while going.load(Ordering::Relaxed) {
            renameat_with(CWD, &ours, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        }
    });
    let (mut mounted, mut refused) = (0, 0);
    // Refusals are quick, so that both come up soon.
    for _ in 0..10_000 {
        if mounted >= 20 && refused >= 20 {
            break;
        }
        let script = "[ -e /v/marker ] && ! [ -e /v/secret ]";
        match place
            .world
            .try_plan(with(script, vec![host(&folder)]))
            .await
        {
            Ok((reason, log)) => {
                assert_eq!(reason, EndReason::Exit(0), "{log}");
                mounted += 1;
            }
            Err(RuntimeError {
                kind: ErrorKind::Volume(_),
                ..
            }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    swapping.store(false, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(mounted > 0 && refused > 0, "no race: {mounted} {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn set_id_files_and_device_nodes_in_a_volume_do_nothing() {
    let place = Place::new().await;
    let data = place.at("allowed/data");
    fs::copy("/usr/bin/id", data.join("id")).unwrap();
    fs::set_permissions(data.join("id"), fs::Permissions::from_mode(0o6755)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
        let (kind, mode) = (FileType::CharacterDevice, Mode::from_raw_mode(0o666));
        mknodat(CWD, data.join("zero"), kind, mode, makedev(1, 5)).unwrap();
    }
    let script = "cp /usr/bin/id /n/id && chmod 6755 /n/id; mknod /n/zero c 1 5; \
                  mknod /v/made c 1 5; head -c1 /v/zero; head -c1 /v/made; head -c1 /n/zero; \
                  grep -E ' /(v|n) ' /proc/self/mounts";
    let volumes = vec![host(&data), super::at(named("n"), "/n")];
    let told = place.says(script, volumes).await;
    let mounts: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("nosuid"))
        .collect();
    assert_eq!(mounts.len(), 2, "{told}");
    assert!(mounts.iter().all(|line| line.contains("nodev")), "{told}");
    if is_root {
        let closed = "cannot open '/v/zero' for reading: Permission denied";
        assert!(told.contains(closed), "{told}");
        assert!(data.join("zero").metadata().unwrap().rdev() != 0);
    }
    assert!(!data.join("made").exists(), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_volume_is_made_of_is_seen_inside() {
    let place = Place::new().await;
    let script = "ls -A /v; cat /v/../image.ext4; ls /v/..| grep -c image; true";
    let told = place.says(script, vec![named("n")]).await;
    assert!(
        told.contains("No such file") && told.ends_with('0'),
        "{told}"
    );
}
