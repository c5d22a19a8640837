//! A path of the host that somebody changes while it is opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use barchan_jail::host_paths::HostPaths;
use rustix::fs::CWD;

#[test]
fn a_link_swapped_in_before_the_mount_leads_nowhere() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("allowed/a")).unwrap();
    let paths = HostPaths::new(&[place.path().join("allowed")], Path::new("/nowhere"));
    let (folder, spare) = (
        place.path().join("allowed/a"),
        place.path().join("allowed/b"),
    );
    symlink(place.path(), &spare).unwrap();
    let swap = || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, &folder, CWD, &spare, flags).unwrap();
    };
    let ours = rustix::fs::stat(&folder).unwrap().st_ino;
    let swapping = AtomicBool::new(true);
    let (mut opened, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let going = &swapping;
        scope.spawn(move || {
            while going.load(Ordering::Relaxed) {
                swap();
            }
        });
        while opened + refused < 10_000 || (opened.min(refused) == 0 && opened < 1_000_000) {
            match paths.open(&place.path().join("allowed"), Path::new("a")) {
                Ok(found) => {
                    assert_eq!(rustix::fs::fstat(&found).unwrap().st_ino, ours);
                    opened += 1;
                }
                Err(_) => refused += 1,
            }
        }
        swapping.store(false, Ordering::Relaxed);
    });
    assert!(opened > 0 && refused > 0, "no race: {opened} {refused}");
}
