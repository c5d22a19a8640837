use barchan_wire::lifecycle::Time;

use super::*;

fn line(second: i64, outcome: Outcome) -> Line {
    Line {
        at: Time::from_micros(second * 1_000_000).unwrap(),
        actor: Actor {
            kind: "nobody".to_owned(),
            ..Actor::default()
        },
        operation: "sandbox.create".to_owned(),
        sandbox: None,
        target: None,
        peer: "192.0.2.1".to_owned(),
        outcome,
        status: Some(202),
        code: None,
        request_id: format!("r{second}"),
        lost: None,
    }
}

const SIZES: Sizes = Sizes {
    file_bytes_max: 1000,
    files_max: 3,
};

fn read(reader: &mut Reader) -> Vec<String> {
    std::iter::from_fn(|| reader.next_line().unwrap())
        .map(|line| line.request_id)
        .collect()
}

fn ids(range: impl Iterator<Item = i64>) -> Vec<String> {
    range.map(|second| format!("r{second}")).collect()
}

#[test]
fn what_stands_in_the_place_of_a_file_is_told_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    std::fs::create_dir_all(folder.join("refusals.jsonl")).unwrap();
    let error = Audit::open(&folder, SIZES).unwrap_err();
    assert!(
        crate::app::advice(&error).contains("move it away"),
        "{error}"
    );
    std::fs::remove_dir(folder.join("refusals.jsonl")).unwrap();
    Audit::open(&folder, SIZES).unwrap();
}

#[test]
fn lines_are_read_by_their_times_and_refusals_push_no_changes_out() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    let audit = Audit::open(&folder, SIZES).unwrap();
    audit.note(line(1, Outcome::Done));
    for second in 2..100 {
        audit.note(line(second, Outcome::Refused));
    }
    audit.note(line(100, Outcome::Abandoned));
    drop(audit);
    let mut reader = Reader::open(&folder).unwrap();
    let found = read(&mut reader);
    assert_eq!((&*found[0], &*found[found.len() - 1]), ("r1", "r100"));
    let oldest: i64 = found[1][1..].parse().unwrap();
    assert_eq!(found[1..found.len() - 1], ids(oldest..100));
    assert!(found.len() < 20, "older refusals are gone: {found:?}");
    let total: u64 = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(
        total <= 2 * SIZES.file_bytes_max * SIZES.files_max,
        "{total}"
    );
}

#[test]
fn who_follows_sees_what_comes_across_a_turn_of_files() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    files::make_folder(&folder).unwrap();
    let mut reader = Reader::open(&folder).unwrap();
    assert!(read(&mut reader).is_empty());
    let mut files = Files::new(&folder, CHANGES, SIZES);
    for second in 0..50 {
        let text = serde_json::to_string(&line(second, Outcome::Done)).unwrap();
        let (begin, end) = text.split_at(text.len() / 2);
        // Half a line is none yet.
        if second % 10 == 0 {
            assert_eq!(read(&mut reader), ids(0..0));
        }
        files.append(format!("{begin}{end}\n").as_bytes()).unwrap();
        assert_eq!(read(&mut reader), ids(second..=second));
    }
    assert_eq!(files::numbers(&folder, CHANGES).unwrap(), [0, 1, 2]);
}

#[test]
fn half_a_line_of_a_killed_server_spoils_no_other() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    files::make_folder(&folder).unwrap();
    std::fs::write(files::path(&folder, CHANGES, 0), b"{\"at\":\"20").unwrap();
    let audit = Audit::open(&folder, SIZES).unwrap();
    audit.note(line(1, Outcome::Done));
    drop(audit);
    let mut reader = Reader::open(&folder).unwrap();
    assert_eq!(read(&mut reader), ["r1"]);
}

/// On this file every write fails as on a full disk.
#[test]
fn a_full_disk_costs_lines_and_nothing_else_and_is_told_in_the_next() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    files::make_folder(&folder).unwrap();
    let newest = files::path(&folder, CHANGES, 0);
    std::os::unix::fs::symlink("/dev/full", &newest).unwrap();
    let mut writer = Writer {
        changes: Files::new(&folder, CHANGES, SIZES),
        refusals: Files::new(&folder, REFUSALS, SIZES),
        refusals_waiting: Arc::default(),
        lost: Arc::default(),
        told: None,
    };
    for second in 0..3 {
        writer.write(line(second, Outcome::Done));
    }
    std::fs::remove_file(&newest).unwrap();
    writer.write(line(3, Outcome::Done));
    writer.write(line(4, Outcome::Done));
    let mut reader = Reader::open(&folder).unwrap();
    let found = [(); 2].map(|()| reader.next_line().unwrap().unwrap());
    assert_eq!(found.map(|line| line.lost), [Some(3), None]);
}

#[test]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let folder = folder(home.path());
    let audit = Audit::open(&folder, SIZES).unwrap();
    audit.note(line(1, Outcome::Done));
    drop(audit);
    for (path, expected) in [
        (folder.clone(), 0o700),
        (files::path(&folder, CHANGES, 0), 0o600),
    ] {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", path.display());
    }
}
