//! Tests of what waits for the disk.

use barchan_daemon::clock::Now;
use jiff::Timestamp;

use super::access::AccessChange;
use super::sqlite::{self, Writer};
use super::{Change, row};
use crate::lifecycle::state::{Origin, Record};

const NOW: Now = Now {
    wall: Timestamp::UNIX_EPOCH,
    uptime: std::time::Duration::ZERO,
};

fn sandbox() -> Change {
    let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
    let record = Record::new(id, Origin::default(), [].into(), None, NOW);
    Change::Put(row::Row::of(&record))
}

fn use_of_key() -> Change {
    Change::Access(AccessChange::UseKeys(vec![("k".to_owned(), 1)]))
}

/// Whether the last commit waited for the disk, by what SQLite itself says of the connection.
fn waited(writer: &Writer) -> bool {
    const FULL: i64 = 2;
    const NORMAL: i64 = 1;
    let asked = writer
        .database
        .query_row("PRAGMA synchronous", [], |line| line.get(0));
    match asked.unwrap() {
        FULL => true,
        NORMAL => false,
        other => panic!("the database is at {other}"),
    }
}

#[test]
fn what_must_outlive_a_power_cut_waits_for_the_disk_and_nothing_else_does() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(sqlite::open(&place.path().join("barchan.db")).unwrap());
    let revoke = || Change::Access(AccessChange::RemoveKey("k".to_owned()));
    let drop_tenant = || Change::Access(AccessChange::RemoveTenant("t".to_owned()));
    let forget_snapshot = || Change::RemoveSnapshot("s".to_owned());
    for (number, (batch, wanted)) in [
        (vec![sandbox()], false),
        (vec![revoke()], true),
        (vec![revoke()], true),
        (vec![sandbox()], false),
        (vec![use_of_key()], false),
        // One that lasts takes along what is written with it.
        (vec![sandbox(), use_of_key(), drop_tenant()], true),
        (vec![forget_snapshot(), use_of_key()], false),
        (vec![revoke(), sandbox()], true),
    ]
    .into_iter()
    .enumerate()
    {
        writer.write(batch.iter()).unwrap();
        assert_eq!(waited(&writer), wanted, "batch {number}: {batch:?}");
    }
}

#[test]
fn a_write_that_fails_leaves_nothing_to_be_believed() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(sqlite::open(&place.path().join("barchan.db")).unwrap());
    let broken = Change::PutPool("p".to_owned(), Err("no words".to_owned()));
    let revoke = Change::Access(AccessChange::RemoveKey("k".to_owned()));
    writer.write([&revoke, &broken].into_iter()).unwrap_err();
    assert!(waited(&writer));
    writer.write([&sandbox()].into_iter()).unwrap();
    assert!(!waited(&writer));
}
