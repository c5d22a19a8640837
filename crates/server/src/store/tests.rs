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

const BOOT: &str = "this run of the host";

fn record(number: u8) -> Record {
    let origin = Origin {
        image: "host".to_owned(),
        entrypoint: vec!["true".to_owned()],
        ..Origin::default()
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
    let (store, kept) = Store::open(&place.path(), BOOT).unwrap();
    assert!(kept.records.is_empty() && kept.graves.is_empty());
    for number in 0..3 {
        put(&store, &record(number)).await;
    }
    let started = Event::Started {
        unenforced: vec!["cpu".to_owned()],
        image_digest: "d".to_owned(),
    };
    let (running, _) = step(record(1), &started, NOW, SPANS).unwrap();
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
    let (_store, Kept { records: read, .. }) = Store::open(&place.path(), BOOT).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], record(0));
    assert_eq!(read[1].state(), running.state());
    assert_eq!(read[1].unenforced(), ["cpu"]);
}

/// What the disk holds at the moment of a receipt is what a killed process leaves behind.
#[tokio::test]
async fn what_has_a_receipt_survives_a_killed_server() {
    let (place, grave) = (Place::new(), Place::new());
    let (store, _) = Store::open(&place.path(), BOOT).unwrap();
    for number in 0..20 {
        put(&store, &record(number)).await;
    }
    for entry in std::fs::read_dir(place.0.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), grave.0.path().join(entry.file_name())).unwrap();
    }
    let (_found, Kept { records: read, .. }) = Store::open(&grave.path(), BOOT).unwrap();
    assert_eq!(read.len(), 20);
    drop(store);
}

#[tokio::test]
async fn a_write_that_fails_is_told() {
    let place = Place::new();
    let (store, _) = Store::open(&place.path(), BOOT).unwrap();
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
        Store::open(&place.path(), BOOT),
        Err(StoreError::Open { .. })
    ));
    let newer = Place::new();
    let database = rusqlite::Connection::open(newer.path()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert!(matches!(
        Store::open(&newer.path(), BOOT),
        Err(StoreError::Open { .. })
    ));
}

/// A claim of a key at a time in seconds.
fn claim(sandbox: &str, key: &str, at_s: i64) -> Claim {
    Claim {
        sandbox: sandbox.to_owned(),
        key: key.to_owned(),
        fingerprint: [7; 32],
        command: format!("{sandbox}/{key}/{at_s}"),
        may_begin: true,
        now_us: at_s * 1_000_000,
    }
}

async fn standing(store: &Store, claim: Claim) -> Standing {
    let slot = store.slot().await.unwrap();
    slot.claim(claim).standing().await.unwrap()
}

async fn settle(store: &Store, key: &str, status: u16, body: Vec<u8>) {
    let outcome = Outcome {
        status,
        kind: "text/plain".to_owned(),
        body: Some(body),
        is_whole: true,
    };
    let settled = Settled {
        sandbox: "s".to_owned(),
        key: key.to_owned(),
        outcome,
    };
    store
        .slot()
        .await
        .unwrap()
        .settle(settled)
        .kept()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_key_stands_for_one_command_across_restarts() {
    let place = Place::new();
    let begun = |at: i64| Standing::Begun(format!("s/k/{at}"));
    {
        let (store, _) = Store::open(&place.path(), BOOT).unwrap();
        let unasked = Claim {
            may_begin: false,
            ..claim("s", "k", 0)
        };
        assert_eq!(standing(&store, unasked).await, Standing::Unknown);
        assert_eq!(standing(&store, claim("s", "k", 1)).await, begun(1));
    }
    let (store, _) = Store::open(&place.path(), BOOT).unwrap();
    assert_eq!(standing(&store, claim("s", "k", 2)).await, begun(1));
    let other = Claim {
        fingerprint: [8; 32],
        ..claim("s", "k", 2)
    };
    assert_eq!(standing(&store, other).await, Standing::Other);
    settle(&store, "k", 400, b"no".to_vec()).await;
    settle(&store, "k", 200, b"yes".to_vec()).await;
    settle(&store, "k", 500, b"late refusal".to_vec()).await;
    let Standing::Ended(command, outcome) = standing(&store, claim("s", "k", 3)).await else {
        panic!("it ended");
    };
    assert_eq!((command.as_str(), outcome.status), ("s/k/1", 200));
    assert_eq!(outcome.body.as_deref(), Some(&b"yes"[..]));
    let day = 24 * 3600;
    assert_eq!(
        standing(&store, claim("s", "k", day + 2)).await,
        begun(day + 2)
    );
}

#[tokio::test]
async fn keys_and_results_are_bounded() {
    let place = Place::new();
    let (store, _) = Store::open(&place.path(), BOOT).unwrap();
    let mut last = Vec::new();
    for number in 0..8200 {
        let slot = store.slot().await.unwrap();
        last.push(slot.claim(claim("s", &format!("k{number}"), 1)));
        if last.len() > 100 {
            last.remove(0).standing().await.unwrap();
        }
    }
    for claimed in last {
        claimed.standing().await.unwrap();
    }
    let known = async |number: u32| {
        let look = Claim {
            may_begin: false,
            ..claim("s", &format!("k{number}"), 1)
        };
        standing(&store, look).await != Standing::Unknown
    };
    assert!(!known(7).await && known(8).await && known(8199).await);
    for number in 1000..1300 {
        settle(&store, &format!("k{number}"), 200, vec![b'x'; 256 * 1024]).await;
    }
    let mut bytes = 0;
    for number in 1000..1300 {
        let found = standing(&store, claim("s", &format!("k{number}"), 1)).await;
        let Standing::Ended(_, outcome) = found else {
            panic!("k{number} ended");
        };
        bytes += outcome.body.map_or(0, |body| body.len());
    }
    assert!((32 << 20..=64 << 20).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn ends_are_kept_and_a_new_run_of_the_host_is_noticed() {
    let place = Place::new();
    let (store, first) = Store::open(&place.path(), BOOT).unwrap();
    assert!(!first.host_restarted, "nothing was open before");
    assert!(first.is_new);
    let slot = store.slot().await.unwrap();
    slot.begin(BOOT).kept().await.unwrap();
    for number in 0..3 {
        put(&store, &record(number)).await;
    }
    let unwanted = step(record(1), &Event::Unwanted, NOW, SPANS).unwrap().0;
    let slot = store.slot().await.unwrap();
    slot.bury(&unwanted.buried(), None).kept().await.unwrap();
    let slot = store.slot().await.unwrap();
    let other = step(record(2), &Event::Unwanted, NOW, SPANS).unwrap().0;
    let evicted = Some(record(1).id().clone());
    slot.bury(&other.buried(), evicted.as_ref())
        .kept()
        .await
        .unwrap();
    drop(store);
    let (store, kept) = Store::open(&place.path(), BOOT).unwrap();
    assert_eq!(kept.records, [record(0)]);
    assert_eq!(kept.graves.len(), 1);
    assert_eq!(kept.graves[0].id(), record(2).id());
    assert!(!kept.host_restarted && !kept.is_new);
    let slot = store.slot().await.unwrap();
    slot.forget(vec![record(2).id().clone()])
        .kept()
        .await
        .unwrap();
    drop(store);
    let (_store, kept) = Store::open(&place.path(), "another").unwrap();
    assert!(kept.graves.is_empty() && kept.host_restarted);
}

#[tokio::test]
async fn keys_and_tenants_are_read_back_and_a_late_use_brings_no_key_back() {
    use crate::access::{Key, Tenant};
    use barchan_wire::lifecycle::{CreateKey, Role, Time};
    let place = Place::new();
    let (store, first) = Store::open(&place.path(), BOOT).unwrap();
    assert!(first.access.keys.is_empty() && first.access.tenants.is_empty());
    let now = Time::from_micros(0).unwrap();
    let key = |id: &str| {
        let asked = CreateKey {
            label: "l".to_owned(),
            tenant: Some("a".to_owned()),
            role: Role::Tenant,
            expires_at: None,
        };
        Key::made(id.to_owned(), "secret", asked, now).0
    };
    let tenant = |name: &str| Tenant {
        name: name.to_owned(),
        terms: barchan_wire::lifecycle::TenantTerms::default(),
        created_at: now,
    };
    let slot = async || store.slot().await.unwrap();
    for id in ["0123456789ab", "0123456789ac"] {
        slot().await.put_key(&key(id)).kept().await.unwrap();
    }
    for name in ["a", "b"] {
        slot().await.put_tenant(&tenant(name)).kept().await.unwrap();
    }
    slot().await.remove_tenant("b").kept().await.unwrap();
    slot()
        .await
        .remove_key("0123456789ac")
        .kept()
        .await
        .unwrap();
    let uses = vec![
        ("0123456789ab".to_owned(), 7),
        ("0123456789ac".to_owned(), 7),
    ];
    slot().await.use_keys(uses).kept().await.unwrap();
    drop(store);
    let (_store, kept) = Store::open(&place.path(), BOOT).unwrap();
    assert_eq!(kept.access.keys, [(key("0123456789ab"), Some(7))]);
    assert_eq!(kept.access.tenants, [tenant("a")]);
}
