use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use barchan_daemon::clock::Now;
use jiff::Timestamp;

use super::*;
use crate::lifecycle::state::{Event, Origin, Spans, step};

const NOW: Now = Now {
    wall: Timestamp::UNIX_EPOCH,
    uptime: Duration::ZERO,
};
const SPANS: Spans = Spans {
    ended_retention: Duration::ZERO,
};

fn record(number: u8) -> Record {
    let origin = Origin {
        image: "host".to_owned(),
        entrypoint: vec!["true".to_owned()],
        platform: None,
        extensions: BTreeMap::new(),
    };
    let id = format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e{number:02x}")
        .parse()
        .unwrap();
    Record::new(id, origin, BTreeMap::new(), None, NOW)
}

async fn put(store: &Store, record: &Record) {
    store
        .slot()
        .await
        .unwrap()
        .put(record)
        .kept()
        .await
        .unwrap();
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("barchan.db")
    }
}

#[tokio::test]
async fn the_last_change_of_each_record_is_read_back() {
    let place = Place::new();
    let (store, none) = Store::open(&place.path()).unwrap();
    assert!(none.is_empty());
    for number in 0..3 {
        put(&store, &record(number)).await;
    }
    let started = Event::Started {
        unenforced: vec!["cpu".to_owned()],
        image_digest: "d".to_owned(),
    };
    let (running, _) = step(record(1), started, NOW, SPANS).unwrap();
    put(&store, &running).await;
    store
        .slot()
        .await
        .unwrap()
        .remove(&record(2))
        .kept()
        .await
        .unwrap();
    drop(store);
    let (_store, read) = Store::open(&place.path()).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], record(0));
    assert_eq!(read[1].state(), running.state());
    assert_eq!(read[1].unenforced(), ["cpu"]);
}

/// What the disk holds at the moment of a receipt is what a killed process leaves behind.
#[tokio::test]
async fn what_has_a_receipt_survives_a_killed_server() {
    let (place, grave) = (Place::new(), Place::new());
    let (store, _) = Store::open(&place.path()).unwrap();
    for number in 0..20 {
        put(&store, &record(number)).await;
    }
    for entry in std::fs::read_dir(place.0.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), grave.0.path().join(entry.file_name())).unwrap();
    }
    let (_found, read) = Store::open(&grave.path()).unwrap();
    assert_eq!(read.len(), 20);
    drop(store);
}

#[tokio::test]
async fn a_write_that_fails_is_told() {
    let place = Place::new();
    let (store, _) = Store::open(&place.path()).unwrap();
    let other = rusqlite::Connection::open(place.path()).unwrap();
    other.execute_batch("DROP TABLE sandboxes").unwrap();
    let told = store.slot().await.unwrap().put(&record(0)).kept().await;
    assert!(matches!(told, Err(StoreError::Write(_))), "{told:?}");
}

#[test]
fn what_is_no_database_of_ours_is_refused() {
    let place = Place::new();
    std::fs::write(
        place.path(),
        "not a database, and long enough to be read as one",
    )
    .unwrap();
    assert!(matches!(
        Store::open(&place.path()),
        Err(StoreError::Open { .. })
    ));
    let newer = Place::new();
    let database = rusqlite::Connection::open(newer.path()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert!(matches!(
        Store::open(&newer.path()),
        Err(StoreError::Open { .. })
    ));
}
