use std::fs::File;

use rustix::net::{Shutdown, shutdown};

use super::*;
use crate::capture::Ids;
use crate::frames;

/// Copies a layer of one file whose sandbox stands still already, for somebody else. Says what came
/// of it, and whether a snapshot lies there.
fn copied(channel: &OwnedFd) -> (io::Result<Captured>, bool) {
    let place = tempfile::tempdir().unwrap();
    let at = |name| place.path().join(name);
    for name in ["shelf", "layer"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::fs::write(at("layer/file"), "x").unwrap();
    std::fs::write(at("events"), "populated 1\nfrozen 1\n").unwrap();
    let open = |name| File::open(at(name)).unwrap();
    let (shelf, layer, events) = (open("shelf"), open("layer").into(), open("events"));
    let order = Order {
        snapshot: "one".to_owned(),
        copying: Copying {
            ids: Ids { from: 0, to: 0 },
            bytes_max: 1 << 20,
            entries_max: 10,
            still_ms: 30_000,
            is_timed: true,
        },
    };
    let given = Given {
        shelf: shelf.as_fd(),
        layer: None,
        events: Some(events.as_fd()),
        connection: None,
        stack: &[],
    };
    let done = take(&order, &layer, &given, channel);
    let is_there = at("shelf/one/layer/file").exists() && !at("shelf/one/links").exists();
    (done, is_there)
}

#[test]
fn the_last_walk_is_for_the_launchers_order_alone() {
    if !rustix::process::geteuid().is_root() {
        // Owners cannot be given by others.
        return;
    }
    let (launcher, copier) = frames::pair().unwrap();
    frames::send(launcher.as_fd(), b"ordered", &[]).unwrap();
    let (done, is_there) = copied(&copier);
    assert_eq!((done.unwrap().entries, is_there), (1, true));

    let (launcher, copier) = frames::pair().unwrap();
    shutdown(&launcher, Shutdown::Write).unwrap();
    let (done, is_there) = copied(&copier);
    assert_eq!(done.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(!is_there);
}
