//! Snapshots that go out as OCI images and come back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use barchan_runtime::{
    ArchiveFault, ErrorKind, ExportOrder, ImportOrder, Imported, Pieces, Plan, Runtime,
    RuntimeError,
};
use barchan_wire::id::SnapshotId;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;

use super::archives;
use super::fidelity::{ATTRIBUTES, LOUD, MAKE, QUIET, SHOW, has_others};
use super::{PATIENCE, World, is_able, new_id};

const BYTES_MAX: u64 = 256 << 20;

impl World {
    async fn exported(&self, id: &SnapshotId, without_host: bool) -> Result<Vec<u8>, RuntimeError> {
        let order = ExportOrder {
            snapshot: id.clone(),
            created: "2001-02-03T04:05:06Z".to_owned(),
            without_host,
            wait: PATIENCE * 6,
        };
        let mut export = self.native.export_snapshot(order).await?;
        let mut all = Vec::new();
        while let Some(piece) = export.pieces.recv().await {
            all.extend_from_slice(&piece);
        }
        assert_eq!(all.len() as u64, export.bytes);
        assert!(export.digest.starts_with("sha256:"));
        Ok(all)
    }

    pub(super) async fn imported(
        &self,
        id: &SnapshotId,
        archive: &[u8],
    ) -> Result<Imported, RuntimeError> {
        let pieces: Vec<_> = archive
            .chunks(100_000)
            .map(|it| Ok(Bytes::copy_from_slice(it)))
            .collect();
        self.received(id, stream::iter(pieces).boxed(), BYTES_MAX)
            .await
    }

    async fn received(
        &self,
        id: &SnapshotId,
        archive: Pieces,
        bytes_max: u64,
    ) -> Result<Imported, RuntimeError> {
        let order = ImportOrder {
            snapshot: id.clone(),
            bytes_max,
            wait: PATIENCE * 6,
        };
        self.native.import_snapshot(order, archive).await
    }

    /// Nothing of what was received is left.
    pub(super) async fn until_clean(&self, kept: &[&SnapshotId]) {
        self.until_shelved(kept).await;
        let tmp = self.state.path().join("images/tmp");
        let left: Vec<_> = fs::read_dir(tmp).unwrap().flatten().collect();
        let left: Vec<_> = left
            .iter()
            .filter(|it| it.file_name().to_string_lossy().starts_with("import"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_the_host_brings_all_back() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (source, before) = world
        .after(&[QUIET, MAKE, ATTRIBUTES, LOUD, SHOW].concat(), None)
        .await;
    let below = world.save(&source).await;
    let remove = "rm -r /data/deep /etc/ssl; mkdir /data/deep; rm /etc/hosts; echo new >/data/new";
    let show = "ls -A /data /data/deep; ls -d /etc/hosts /etc/ssl 2>&1; cat /data/plain";
    let (second, changed) = world
        .after(&format!("{remove}; {show}"), Some(&below))
        .await;
    let above = world.save(&second).await;

    let refused = world.exported(&above, false).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Archive(ArchiveFault::OnHost));
    let (one, two) = (
        world.exported(&below, true).await.unwrap(),
        world.exported(&above, true).await.unwrap(),
    );
    assert!(
        one == world.exported(&below, true).await.unwrap(),
        "the same bytes"
    );
    let (first, next) = (new_id(), new_id());
    let imported = world.imported(&first, &one).await.unwrap();
    assert!(
        imported.bytes < 10 << 20,
        "holes take no room: {imported:?}"
    );
    world.imported(&next, &two).await.unwrap();
    assert_eq!(world.restored(&first, SHOW).await, before);
    assert_eq!(world.restored(&next, show).await, changed);
    // What was taken of several layers is one.
    let again = world.exported(&next, true).await.unwrap();
    let third = new_id();
    world.imported(&third, &again).await.unwrap();
    assert_eq!(world.restored(&third, show).await, changed);
    world
        .until_clean(&[&below, &above, &first, &next, &third])
        .await;
}

/// A root file system with a shell in it, as a layer: what the host's shell needs, and no more.
fn layer_with_a_shell(home: &Path) -> Vec<u8> {
    let script = r#"
set -e
mkdir -p root/bin root/etc root/lib64
for program in sh cat ls mkdir rm sleep id env stat chown tail; do
    found=$(readlink -f "$(command -v $program)")
    cp "$found" root/bin/$program
    for library in $(ldd "$found" | grep -o '/[^ ]*'); do
        mkdir -p "root$(dirname "$library")"
        cp -L "$library" "root$library"
    done
done
echo below >root/etc/below
echo removed >root/etc/removed
tar -C root --format=pax -cf layer.tar .
"#;
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(home)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    fs::read(home.join("layer.tar")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_others_becomes_sandboxes_and_goes_out_whole() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let layers = [layer_with_a_shell(home.path())];
    let image = archives::Image {
        config: serde_json::json!({
            "Env": ["PATH=/bin", "GREETING=hello"],
            "Entrypoint": ["/bin/sh"],
            "WorkingDir": "/etc",
            "User": "1234:99",
        }),
        ..archives::Image::of(&layers)
    };
    let first = new_id();
    let imported = world.imported(&first, &image.packed()).await.unwrap();
    assert_eq!(imported.digest, image.digest());
    let told = world
        .restored(&first, "echo $GREETING $PATH; pwd; cat below")
        .await;
    assert_eq!(told, "hello /bin\n/etc\nbelow");

    let script = "rm /etc/removed; echo above >/etc/above; mkdir /new; chown 7:8 /new";
    let (id, _) = world.after(script, Some(&first)).await;
    let second = world.save(&id).await;
    let archive = world.exported(&second, false).await.unwrap();
    // Nothing of the source is needed any more.
    world.native.delete(&id).await.unwrap();
    for gone in [&second, &first] {
        world.native.delete_snapshot(gone).await.unwrap();
    }
    world.until_clean(&[]).await;
    let third = new_id();
    world.imported(&third, &archive).await.unwrap();
    let told = world
        .restored(
            &third,
            "echo $GREETING; ls /etc; cat /etc/above; stat -c %u:%g /new",
        )
        .await;
    // Without other users, nothing can be given to one.
    let owner = if has_others(&world).await {
        "7:8"
    } else {
        "0:0"
    };
    assert!(
        told.starts_with("hello") && told.ends_with(&format!("above\n{owner}")),
        "{told}"
    );
    assert!(
        told.contains("below") && !told.contains("removed"),
        "{told}"
    );
    let mut plan = super::plan("", &["/bin/sh", "-c", "sleep 1000"], Default::default());
    plan.snapshot = Some(third.clone());
    world.native.create(Plan { ..plan }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_are_read_however_they_are_compressed() {
    let world = World::new().await;
    let home = tempfile::tempdir().unwrap();
    let layers = [layer_with_a_shell(home.path()), archives::small()];
    let kinds: [(archives::Pack, &str); 2] = [
        (
            archives::gzip,
            "application/vnd.oci.image.layer.v1.tar+gzip",
        ),
        (
            archives::zstd,
            "application/vnd.oci.image.layer.v1.tar+zstd",
        ),
    ];
    for (pack, kind) in kinds {
        let image = archives::Image {
            pack,
            kind,
            ..archives::Image::of(&layers)
        };
        let id = new_id();
        world.imported(&id, &image.packed()).await.unwrap();
        assert_eq!(world.restored(&id, "cat /file").await, "content", "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_images_are_refused_and_leave_nothing() {
    let world = World::new().await;
    for (why, archive, fault, words) in archives::HOSTILE {
        let id = new_id();
        let archive = stream::iter([Ok(Bytes::from(archive()))]).boxed();
        let error = world.received(&id, archive, 8 << 20).await.unwrap_err();
        let expected = ErrorKind::Archive(fault);
        assert_eq!(error.kind, expected, "{why}: {error}");
        assert!(error.message.contains(words), "{why}: {error}");
        world.until_clean(&[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_half_way_leaves_nothing() {
    let world = World::new().await;
    let whole = archives::Image::of(&[archives::small()]).packed();
    let broken: Vec<std::io::Result<Bytes>> = vec![
        Ok(Bytes::copy_from_slice(&whole[..whole.len() / 2])),
        Err(std::io::Error::other("reset")),
    ];
    let archive = stream::iter(broken).boxed();
    let error = world
        .received(&new_id(), archive, BYTES_MAX)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Archive(ArchiveFault::BrokenOff));
    // One who sends on and on.
    let piece = Bytes::from(vec![0; 1 << 20]);
    let endless = stream::repeat_with(move || Ok(piece.clone())).boxed();
    let error = world
        .received(&new_id(), endless, 1 << 20)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Archive(ArchiveFault::TooLarge));
    // One who is not waited for.
    let never = stream::pending().boxed();
    let id = new_id();
    let waited = world.received(&id, never, BYTES_MAX);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), waited)
            .await
            .is_err()
    );
    world.until_clean(&[]).await;
}
