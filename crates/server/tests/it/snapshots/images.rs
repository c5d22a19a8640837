//! Snapshots as OCI images over HTTP.

use barchan_runtime::ArchiveFault as Fault;
use barchan_runtime::ErrorKind::{self, Archive};
use serde_json::json;

use super::{NOBODY, code, of};
use crate::world::{Answer, Set, World};

impl World {
    async fn exported(&self, id: &str, query: &str) -> Answer {
        let path = format!("/x/snapshots/{id}/export{query}");
        self.call("GET", &path).send().await
    }

    async fn imported(&self, archive: impl Into<bytes::Bytes>, query: &str) -> Answer {
        let path = format!("/x/snapshots/import{query}");
        self.call("POST", &path).body(archive).send().await
    }
}

#[tokio::test]
async fn an_exported_image_is_imported_and_ready_at_once() {
    let world = World::new().await;
    let id = world.sandbox().await;
    let snapshot = world.ready(&id, &json!({"name": "one"})).await;
    let refused = world.exported(&snapshot, "").await;
    assert_eq!(code(&refused), "409 SNAPSHOT::STANDS_ON_HOST");
    let export = world.exported(&snapshot, "?withoutHost=true").await;
    assert_eq!(export.status, 200, "{export:?}");
    let length = export.body.len().to_string();
    let expected = [
        ("content-type", "application/x-tar"),
        ("content-length", &length),
        ("etag", "\"sha256:fa4e\""),
    ];
    for (name, value) in expected {
        assert_eq!(export.headers[name], value);
    }
    let import = world.imported(export.body.clone(), "?name=two").await;
    assert_eq!(import.status, 201, "{import:?}");
    let told = import.json();
    assert_eq!(
        (&told["name"], &told["status"]["state"]),
        (&json!("two"), &json!("Ready"))
    );
    assert_eq!(told["sandboxId"], "00000000-0000-0000-0000-000000000000");
    let made = told["id"].as_str().unwrap();
    assert_eq!(import.headers["location"], format!("/v1/snapshots/{made}"));
    assert_eq!(world.shown(made).await, told);
    let sandbox = world.create(&of(made)).await;
    assert_eq!(sandbox.status, 202, "{sandbox:?}");
    assert_eq!(
        world.drop_snapshot(made).await,
        "409 SNAPSHOT::DELETE_CONFLICT"
    );
}

#[tokio::test]
async fn what_cannot_be_imported_or_exported_leaves_nothing() {
    let world = World::with(&Set::settings("[limits]\nsnapshots_max = 2\n")).await;
    for (archive, query, expected) in [
        ("nonsense", "", "400 SNAPSHOT::IMAGE_INVALID"),
        ("", "", "400 SNAPSHOT::IMAGE_INVALID"),
        ("fake image host", "?name=", "422 none"),
    ] {
        assert_eq!(code(&world.imported(archive, query).await), expected);
        assert!(world.named("").await.is_empty());
    }
    world
        .fake
        .fail("import_snapshot", ErrorKind::Unavailable, 1);
    let failed = world.imported("fake image host", "").await;
    assert_eq!(code(&failed), "500 DOCKER::INITIALIZATION_ERROR");
    for (kind, expected) in [
        (Archive(Fault::Platform), "400 SNAPSHOT::IMAGE_PLATFORM"),
        (Archive(Fault::TooLarge), "413 SNAPSHOT::IMAGE_TOO_LARGE"),
        (Archive(Fault::BrokenOff), "400 SNAPSHOT::IMAGE_BROKEN_OFF"),
        (Archive(Fault::Unspeakable), "409 SNAPSHOT::NOT_EXPORTABLE"),
        (Archive(Fault::Busy), "429 SNAPSHOT::TRANSFERS_BUSY"),
        (ErrorKind::SnapshotFailed, "500 SNAPSHOT::TRANSFER_FAILED"),
    ] {
        world.fake.fail("import_snapshot", kind, 1);
        let failed = world.imported("fake image host", "").await;
        assert_eq!(code(&failed), expected);
    }
    assert!(world.named("").await.is_empty());
    for _ in 0..2 {
        assert_eq!(world.imported("fake image host", "").await.status, 201);
    }
    let full = world.imported("fake image host", "").await;
    assert_eq!(code(&full), "429 SNAPSHOT::LIMIT_REACHED");
    for (id, query, expected) in [
        (NOBODY, "", "404 SNAPSHOT::NOT_FOUND"),
        ("nonsense", "", "404 SNAPSHOT::NOT_FOUND"),
        (NOBODY, "?withoutHost=perhaps", "422 none"),
    ] {
        assert_eq!(code(&world.exported(id, query).await), expected);
    }
}
