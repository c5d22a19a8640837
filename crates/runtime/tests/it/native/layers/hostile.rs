//! Trees that a sandbox makes to be a burden: they are answered within limits, and go with it.
//!
//! `BARCHAN_LAYERS_ENTRIES` says how many files the large one has; `make layers` makes a million.

use std::time::Duration;

use barchan_runtime::{
    CompareOrder, ErrorKind, Form, Layer, Limits, Phase, Runtime, RuntimeError, SealOrder, Sealed,
    SnapshotOrder, WhenHeld,
};
use barchan_testkit::leftovers;
use barchan_wire::id::SandboxId;
use serde_json::Value;
use tokio::time::timeout;

use super::{is_able, setting};
use crate::native::world::{World, plan};

/// Files of the large tree when nobody says how many.
const ENTRIES: u64 = 10_000;
/// Folders when nobody says how many.
const DEPTH: u64 = 5_000;
/// The disk that each file takes: ext4 makes room for one in 16 KiB.
const FILE_BYTES: u64 = 24 << 10;
/// Longest time for one answer about a hostile tree; `make layers` has the largest ones.
const WAIT: Duration = Duration::from_secs(300);

/// So many folders, one in the other, made where paths need not be longer than the kernel takes.
const DEEP: &str = "
import os
os.chdir('/')
os.mkdir('/deep')
folder = os.open('/deep', os.O_DIRECTORY)
for n in range(DEPTH):
    os.mkdir('d', dir_fd=folder)
    inner = os.open('d', os.O_DIRECTORY, dir_fd=folder)
    os.close(folder)
    folder = inner
os.close(folder)
";

/// So many files, in folders of a thousand.
const MANY: &str = "
import os
os.chdir('/')
for n in range(ENTRIES // 1000):
    os.makedirs(f'/many/{n}')
    for m in range(999):
        open(f'/many/{n}/{m}', 'w').close()
";

/// Names that are no UTF-8, or mean something elsewhere.
const ODD: &str = r"
import os
os.chdir('/')
os.mkdir('/odd')
for name in [b'\xff\xfe', b'\xc0\xaf..', b'a\nb', b'\x1b[2J', b'.wh.x', b'.wh..wh..opq', b'\\xff',
             b' ', b'-rf', b'x' * 240, '\u202e'.encode()]:
    path = b'/odd/' + name
    open(path, 'wb').write(name)
    os.mkdir(path + b'.d')
    os.symlink(name, path + b'.l')
";

/// A folder and a link to one of the image that change places all the time. What is sealed cannot
/// be renamed any more, and is made anew.
const SWAPS: &str = "
import os, shutil
os.chdir('/')
def swap():
    os.makedirs('/swap/a/inner')
    with open('/swap/a/inner/file', 'w') as file:
        file.write('own')
    os.symlink('/etc', '/swap/b')
    print('ready', flush=True)
    for n in range(1000):
        for old, new in [('a', 'c'), ('b', 'a'), ('c', 'b')]:
            os.rename(f'/swap/{old}', f'/swap/{new}')
while True:
    try:
        swap()
    except OSError:
        pass
    shutil.rmtree('/swap')
";

/// Waits once it is done.
const STAYS: &str = "
import time
print('ready', flush=True)
time.sleep(100000)
";

impl World {
    async fn hostile(&self, script: &str, files: u64) -> SandboxId {
        let script = format!("{script}{STAYS}");
        let limits = Limits {
            disk_bytes: Some((1 << 30).max(files * FILE_BYTES)),
            ..Limits::default()
        };
        let plan = plan("host", &["/usr/bin/python3", "-IBSc", &script], limits);
        let id = plan.id.clone();
        self.native.create(plan).await.unwrap();
        let ready = async {
            while !self.native.logs(&id).await.unwrap().ends_with(b"ready\n") {
                let seen = self.native.observe(&id).await.unwrap().unwrap();
                let log = self.native.logs(&id).await.unwrap();
                let log = String::from_utf8_lossy(&log);
                assert_eq!(seen.phase, Phase::Running, "{log}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT, ready).await.expect("the tree is made");
        id
    }

    async fn sealed(&self, sandbox: &SandboxId) -> Result<Layer, RuntimeError> {
        let order = SealOrder {
            sandbox: sandbox.clone(),
            when_held: WhenHeld::Copy,
            note: String::new(),
            wait: WAIT,
        };
        match self.native.seal(order).await? {
            Sealed::Layer(layer) => Ok(layer),
            Sealed::Held(holders) => panic!("{holders:?}"),
        }
    }

    /// The lines about two layers, or what there was until it broke off.
    async fn lines(&self, sandbox: &SandboxId, from: u32, to: u32, form: Form) -> (Vec<u8>, bool) {
        let order = CompareOrder {
            sandbox: sandbox.clone(),
            from,
            to,
            form,
        };
        let compared = async {
            let mut comparison = match self.native.compare(order).await {
                Ok(comparison) => comparison,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::LayerFailed, "{error}");
                    return (Vec::new(), false);
                }
            };
            let (mut all, mut is_whole) = (Vec::new(), false);
            while let Some(piece) = comparison.pieces.recv().await {
                is_whole = piece.is_empty();
                all.extend_from_slice(&piece);
            }
            (all, is_whole)
        };
        timeout(WAIT, compared).await.expect("an answer in time")
    }

    /// The last line: how much was found, and why not all.
    async fn summary(&self, sandbox: &SandboxId, from: u32, to: u32) -> Value {
        let (told, is_whole) = self.lines(sandbox, from, to, Form::Lines).await;
        assert!(is_whole, "it broke off");
        let last = told
            .split(|byte| *byte == b'\n')
            .rfind(|line| !line.is_empty());
        let last: Value = serde_json::from_slice(last.unwrap()).unwrap();
        last["summary"].clone()
    }

    /// Everything goes, though the kernel takes its time to let go of so much.
    async fn ends(self, id: &SandboxId, layer: u32) {
        let native = &self.native;
        native.forget_layers(id, &[layer]).await.unwrap();
        native.delete(id).await.unwrap();
        native.close().await.unwrap();
        let vanished = async {
            while !leftovers::of(self.state.path()).is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WAIT, vanished).await.expect("it is taken down");
    }

    /// Makes a snapshot of a layer, or is told why not; it is there, or nothing is.
    async fn committed(&self, sandbox: &SandboxId, layer: u32) -> Result<(), RuntimeError> {
        let order = SnapshotOrder {
            sandbox: sandbox.clone(),
            layer: Some(layer),
            snapshot: uuid::Uuid::new_v4().to_string().parse().unwrap(),
            bytes_max: 4 << 30,
            wait: WAIT,
        };
        let snapshot = order.snapshot.clone();
        let done = timeout(WAIT, self.native.snapshot(order)).await;
        let done = done.expect("an answer in time").map(|_| ());
        self.native.delete_snapshot(&snapshot).await.unwrap();
        let removed = async {
            while !self.shelved().is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WAIT, removed).await.expect("nothing of it stays");
        done
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_are_too_deep_are_cut_or_refused() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let depth = setting("BARCHAN_LAYERS_DEPTH", DEPTH);
    let id = world
        .hostile(&DEEP.replace("DEPTH", &depth.to_string()), depth)
        .await;
    let layer = world.sealed(&id).await.unwrap();
    assert!(!layer.is_copied && layer.entries >= depth, "{layer:?}");
    let summary = world.summary(&id, 0, layer.number).await;
    assert_eq!(summary["cut"], "depth", "{summary}");
    let summary = world.summary(&id, layer.number, 0).await;
    assert_eq!(summary["cut"], "depth", "{summary}");
    let (_, is_whole) = world.lines(&id, 0, layer.number, Form::Tar).await;
    assert!(!is_whole, "half a tree as if it were all");
    let refused = world.committed(&id, layer.number).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::SnapshotFailed);
    assert!(refused.message.contains("1024 folders deep"), "{refused}");
    world.native.undo(&id, 0).await.unwrap();
    world.ends(&id, layer.number).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn very_many_files_are_sealed_and_compared_as_far_as_may_be() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let entries = setting("BARCHAN_LAYERS_ENTRIES", ENTRIES);
    let script = MANY.replace("ENTRIES", &entries.to_string());
    let id = world.hostile(&script, entries).await;
    let layer = world.sealed(&id).await.unwrap();
    assert!(!layer.is_copied && layer.entries >= entries, "{layer:?}");
    // However much there is, the sandbox stands still for the exchange alone.
    assert!(layer.still < Duration::from_secs(2), "{layer:?}");
    let summary = world.summary(&id, 0, layer.number).await;
    println!("{summary}, still {:?}", layer.still);
    let found = summary["added"].as_u64().unwrap();
    assert!(found >= entries || summary["cut"].is_string(), "{summary}");
    let done = world.committed(&id, layer.number).await;
    println!("{done:?}");
    world.native.undo(&id, 0).await.unwrap();
    world.ends(&id, layer.number).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_names_come_through_whatever_is_done_with_a_layer() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let id = world.hostile(ODD, 0).await;
    let layer = world.sealed(&id).await.unwrap();
    let (told, is_whole) = world.lines(&id, 0, layer.number, Form::Lines).await;
    let told = String::from_utf8(told).unwrap();
    assert!(is_whole && !told.contains('\u{1b}'), "{told}");
    for name in [
        r#"/odd/\\xff\\xfe""#,
        r#"/odd/a\nb""#,
        r#"/odd/\\x5cxff""#,
        "/odd/.wh.x\"",
    ] {
        assert!(told.contains(name), "{name}: {told}");
    }
    // An image has no word for some of them: they are left out of it, and count for the digest.
    let mut sizes = Vec::new();
    for form in [Form::Tar, Form::Exact] {
        let (archive, is_whole) = world.lines(&id, 0, layer.number, form).await;
        assert!(is_whole, "{form:?}");
        let has_marks = archive.windows(10).any(|bytes| bytes == b"odd/.wh.x.");
        assert_eq!(has_marks, form == Form::Exact, "{form:?}");
        sizes.push(archive.len());
    }
    assert!(sizes[0] < sizes[1], "{sizes:?}");
    world.committed(&id, layer.number).await.unwrap();
    let listed = "ls /odd | wc -c";
    let before = world.forked(&id, layer.number, listed).await;
    world.native.undo(&id, layer.number).await.unwrap();
    assert_eq!(world.forked(&id, layer.number, listed).await, before);
    world.native.delete(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_change_places_lead_nobody_out() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let script = ["/usr/bin/python3", "-IBSc", SWAPS];
    let plan = plan("host", &script, Limits::default());
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "ready").await;
    for _ in 0..20 {
        let layer = world.sealed(&id).await.unwrap();
        let (told, is_whole) = world.lines(&id, 0, layer.number, Form::Lines).await;
        let told = String::from_utf8(told).unwrap();
        assert!(is_whole && !told.contains("passwd"), "{told}");
        let listed = "find /swap 2>/dev/null | wc -l";
        let listed = world.forked(&id, layer.number, listed).await;
        assert!(listed.parse::<u32>().unwrap() < 6, "{listed}");
        world.committed(&id, layer.number).await.unwrap();
    }
    world.native.delete(&id).await.unwrap();
}
