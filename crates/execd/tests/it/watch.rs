//! `/x/watch`: changes of files as they happen.

use serde_json::{Value, json};

use crate::http::Open;
use crate::world::{World, until};

/// A watch as a caller sees it.
struct Watch {
    open: Open,
    unread: Vec<u8>,
}

impl Watch {
    fn begin(world: &World, name: &str, options: &str) -> Self {
        let path = format!("{}{options}", world.query("/x/watch", name));
        let open = world.open("GET", &path, &[], None);
        assert_eq!(open.status, 200);
        let mut watch = Self {
            open,
            unread: Vec::new(),
        };
        assert_eq!(watch.next().unwrap()["type"], "ready");
        watch
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.unread.drain(..end + 2).collect();
                match frame.strip_prefix(b"data: ") {
                    Some(data) => return Some(serde_json::from_slice(data).unwrap()),
                    None => assert!(frame.starts_with(b":"), "{frame:?}"),
                }
                continue;
            }
            self.unread.extend(self.open.piece().unwrap()?);
        }
    }

    /// Events up to the first of this kind and path, as kind and path below the scratch directory.
    fn until(&mut self, world: &World, kind: &str, name: &str) -> Vec<(String, String)> {
        let root = format!("{}/", world.at("d").display());
        let mut all = Vec::new();
        loop {
            let event = self.next().unwrap();
            let path = event["path"].as_str().unwrap().replace(&root, "");
            all.push((event["type"].as_str().unwrap().to_owned(), path));
            if all
                .last()
                .is_some_and(|last| last.0 == kind && last.1 == name)
            {
                return all;
            }
        }
    }
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter()
        .map(|(kind, path)| ((*kind).to_owned(), (*path).to_owned()))
        .collect()
}

#[test]
fn what_happens_in_a_directory_is_told_in_order() {
    let world = World::new();
    world.sh("mkdir dir dir/sub other; echo 1 > dir/old");
    let mut watch = Watch::begin(&world, "dir", "");
    world.sh(
        "echo x > dir/new; chmod 600 dir/new; mv dir/new dir/name; mv dir/old other; rm dir/name; \
         echo deep > dir/sub/unseen; mkdir dir/last",
    );
    let told = watch.until(&world, "create", "dir/last");
    let wanted = [
        ("create", "dir/new"),
        ("modify", "dir/new"),
        ("close", "dir/new"),
        ("attributes", "dir/new"),
        ("move_from", "dir/new"),
        ("move_to", "dir/name"),
        ("move_from", "dir/old"),
        ("delete", "dir/name"),
        ("create", "dir/last"),
    ];
    assert_eq!(told, pairs(&wanted));
    world.sh("rm -r dir");
    let kinds = std::iter::from_fn(|| watch.next());
    let kinds: Vec<Value> = kinds.map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.last(), Some(&json!("gone")));
}

#[test]
fn a_recursive_watch_follows_directories_that_come_and_go() {
    let world = World::new();
    world.sh("mkdir -p dir/a/b outside");
    let mut watch = Watch::begin(&world, "dir", "&recursive=true");
    world.sh("echo x > dir/a/b/one");
    watch.until(&world, "close", "dir/a/b/one");
    world.sh(
        "mkdir -p dir/new/deep; echo x > dir/new/deep/two; sync dir; echo y > dir/new/deep/two",
    );
    watch.until(&world, "create", "dir/new/deep/two");
    watch.until(&world, "close", "dir/new/deep/two");
    world.sh("mv dir/a dir/c");
    watch.until(&world, "move_to", "dir/c");
    world.sh("echo x > dir/c/b/three");
    watch.until(&world, "close", "dir/c/b/three");
    world.sh("mv dir/c outside/c");
    watch.until(&world, "move_from", "dir/c");
    world.sh("echo x > outside/c/b/unseen; echo x > dir/seen");
    let told = watch.until(&world, "create", "dir/seen");
    assert!(
        told.iter().all(|(_, path)| !path.contains("unseen")),
        "{told:?}"
    );
}

#[test]
fn names_are_spelled_as_asked_and_rights_are_those_of_the_user() {
    let world = World::new();
    world.sh("mkdir own secret; chmod 700 secret; chmod 755 . .. own");
    let mut watch = Watch::begin(&world, "own", "&paths=exact&uid=4242&gid=4242");
    world.sh("touch \"$(printf 'own/a\\\\b\\377')\"");
    let event = watch.next().unwrap();
    assert!(
        event["path"].as_str().unwrap().ends_with("/a\\x5cb\\xff"),
        "{event}"
    );
    let secret = format!("{}&uid=4242&gid=4242", world.query("/x/watch", "secret"));
    assert_eq!(world.get(&secret).error().0, 403);
    assert_eq!(world.get(&world.query("/x/watch", "none")).error().0, 404);
}

#[test]
fn a_caller_that_takes_nothing_is_told_that_events_were_lost() {
    let world = World::new();
    std::fs::create_dir(world.d("dir")).unwrap();
    let mut watch = Watch::begin(&world, "dir", "");
    // More than the kernel keeps, and than fits on the way.
    let most: u64 = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let files = most * 2 + 20_000;
    let run = world.sh(&format!(
        "cd dir; seq {files} | xargs touch; rm -rf ../gone; echo made"
    ));
    assert_eq!(run.out(), "made\n", "{}", run.err());
    let mut lost = false;
    for _ in 0..files * 4 {
        if watch.next().unwrap()["type"] == "overflow" {
            lost = true;
            break;
        }
    }
    assert!(lost);
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 * 1024, "{peak} KiB");
}

#[test]
fn watches_are_limited_and_end_with_their_callers() {
    let world = World::new();
    let path = world.query("/x/watch", "");
    let open = || world.open("GET", &path, &[], None);
    let all: Vec<Open> = (0..16).map(|_| open()).collect();
    assert!(all.iter().all(|it| it.status == 200));
    assert_eq!(world.get(&path).error().0, 503);
    drop(all);
    until("there is a place again", || open().status == 200);
    let descriptors = format!("/proc/{}/fd", world.pid());
    let watches = || {
        let links = std::fs::read_dir(&descriptors).unwrap().flatten();
        let links = links.filter_map(|it| std::fs::read_link(it.path()).ok());
        links
            .filter(|it| it.to_string_lossy().contains("inotify"))
            .count()
    };
    until("no watch is left", || watches() == 0);
}
