//! What differs between the layers of real sandboxes, and snapshots that are made of them.

use std::io::Write;
use std::process::{Command, Stdio};

use barchan_runtime::{
    CompareOrder, Comparison, ErrorKind, Form, Limits, Plan, Runtime, RuntimeError, SnapshotOrder,
};
use barchan_wire::id::SandboxId;
use serde_json::Value;
use uuid::Uuid;

use super::super::world::{World, plan};
use super::{PATIENCE, is_able};

/// What the first layer holds, and what a sandbox made of that does.
const MAKES: &str = "mkdir -p /p/old && cd /p && printf 'one\\ntwo\\n' > text && \
    printf '\\0\\1' > bin && echo x > old/file && ln -s text link && echo gone > gone && cd / && \
    echo made; exec sleep 100000";
const CHANGES: &str = "cd /p && printf 'one\\nzwei\\n' > text && printf '\\0\\2' > bin && \
    chmod 4755 link old && rm -r gone && mv old new && chown 7:8 bin && cd / && echo changed; \
    exec sleep 100000";

impl World {
    pub(super) async fn starts(
        &self,
        script: &str,
        says: &str,
        from: Option<(&SandboxId, u32)>,
    ) -> SandboxId {
        let plan = plan("host", &["/bin/sh", "-c", script], Limits::default());
        let from = from.map(|(sandbox, layer)| barchan_runtime::Origin {
            sandbox: sandbox.clone(),
            layer,
        });
        let id = plan.id.clone();
        self.native.create(Plan { from, ..plan }).await.unwrap();
        self.told(&id, says).await;
        id
    }

    async fn compare(
        &self,
        id: &SandboxId,
        (from, to): (u32, u32),
        form: Form,
    ) -> Result<Vec<u8>, RuntimeError> {
        let order = CompareOrder {
            sandbox: id.clone(),
            from,
            to,
            form,
        };
        let Comparison { mut pieces, .. } = self.native.compare(order).await?;
        let mut all = Vec::new();
        while let Some(piece) = pieces.recv().await {
            if piece.is_empty() {
                return Ok(all);
            }
            all.extend_from_slice(&piece);
        }
        panic!("it broke off behind {}", String::from_utf8_lossy(&all));
    }

    /// What is told below `/p`: each path with what happened to it.
    async fn changes(&self, id: &SandboxId, layers: (u32, u32)) -> Vec<String> {
        let told = self.compare(id, layers, Form::Lines).await.unwrap();
        let lines = told
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines
            .map(|it| serde_json::from_slice(it).unwrap())
            .collect();
        let (last, changes) = lines.split_last().unwrap();
        assert!(last["summary"]["cut"].is_null(), "{last}");
        let shown = changes.iter().filter_map(|change| {
            let path = change["path"].as_str()?.strip_prefix("/p/")?;
            let differs = change.get("differs").map(Value::to_string);
            Some(format!(
                "{} {path} {}",
                change["change"].as_str()?,
                differs.unwrap_or_default()
            ))
        });
        shown.collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_between_layers_is_told() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let source = world.starts(MAKES, "made", None).await;
    let first = world.seal(&source).await.number;
    let made = [
        "added bin ",
        "added gone ",
        "added link ",
        "added old ",
        "added old/file ",
        "added text ",
    ];
    assert_eq!(world.changes(&source, (0, first)).await, made);
    assert!(world.changes(&source, (first, first)).await.is_empty());
    // The other one has ids of its own, and so have the layers that it shares.
    let fork = world
        .starts(CHANGES, "changed", Some((&source, first)))
        .await;
    let second = world.seal(&fork).await.number;
    let expected = [
        "changed bin [\"content\",\"owner\"]",
        "deleted gone ",
        "added new ",
        "added new/file ",
        "deleted old ",
        "deleted old/file ",
        "changed text [\"content\",\"mode\"]",
    ];
    assert_eq!(world.changes(&fork, (0, second)).await, expected);
    let told = world
        .compare(&fork, (0, second), Form::Lines)
        .await
        .unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("-two\\n+zwei"), "{told}");
    assert!(told.contains("\"uid\":7,\"gid\":8"), "{told}");
    world.native.delete(&source).await.unwrap();
    let backwards = world.changes(&fork, (second, 0)).await;
    assert!(
        backwards.contains(&"added gone ".to_owned()),
        "{backwards:?}"
    );
    let archive = world.compare(&fork, (0, second), Form::Tar).await.unwrap();
    let names = names_of(&archive);
    for name in [
        "p/.wh.gone",
        "p/.wh.old",
        "p/new/",
        "p/new/file",
        "p/text",
        "p/bin",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    let unknown = world.compare(&fork, (0, 9), Form::Lines).await;
    assert_eq!(unknown.unwrap_err().kind, ErrorKind::UnknownLayer);
    world.native.delete(&fork).await.unwrap();
    let gone = world.compare(&fork, (0, 1), Form::Lines).await;
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
}

fn names_of(archive: &[u8]) -> Vec<String> {
    let mut tar = Command::new("tar");
    tar.args(["-t"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = tar.spawn().unwrap();
    child.stdin.take().unwrap().write_all(archive).unwrap();
    let listed = child.wait_with_output().unwrap();
    assert!(listed.status.success());
    let names = String::from_utf8(listed.stdout).unwrap();
    names
        .lines()
        .map(|name| name.trim_start_matches("./").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_made_of_a_layer() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let source = world.starts(MAKES, "made", None).await;
    let first = world.seal(&source).await.number;
    let fork = world
        .starts(CHANGES, "changed", Some((&source, first)))
        .await;
    let second = world.seal(&fork).await.number;
    let script = "cat /p/text; ls /p | tr '\\n' ' '; stat -c %u /p/bin";
    for (sandbox, layer, expected) in [
        (&source, first, "one\ntwo\nbin gone link old text 0"),
        (&fork, 0, "one\ntwo\nbin gone link old text 0"),
        (&fork, second, "one\nzwei\nbin link new text 7"),
    ] {
        let order = |layer| SnapshotOrder {
            sandbox: sandbox.clone(),
            layer: Some(layer),
            snapshot: Uuid::new_v4().to_string().parse().unwrap(),
            bytes_max: 1 << 30,
            wait: PATIENCE,
        };
        let made = order(layer);
        world.native.snapshot(made.clone()).await.unwrap();
        assert_eq!(world.restored(&made.snapshot, script).await, expected);
        let failed = world.native.snapshot(order(99)).await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::UnknownLayer);
    }
    // How a sandbox was made that stands on nothing but its image.
    let bare = SnapshotOrder {
        sandbox: source.clone(),
        layer: Some(0),
        snapshot: Uuid::new_v4().to_string().parse().unwrap(),
        bytes_max: 1 << 30,
        wait: PATIENCE,
    };
    world.native.snapshot(bare.clone()).await.unwrap();
    let seen = world
        .restored(&bare.snapshot, "ls -d /p 2>&1; stat -c %a /")
        .await;
    assert!(
        seen.contains("cannot access") && seen.ends_with("755"),
        "{seen}"
    );
    for id in [source, fork] {
        world.native.delete(&id).await.unwrap();
    }
}
