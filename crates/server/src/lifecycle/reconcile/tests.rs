use std::collections::BTreeMap;
use std::time::Duration;

use barchan_daemon::clock::Now;
use barchan_runtime::EndReason;
use jiff::Timestamp;

use super::*;
use crate::lifecycle::state::{Origin, Spans, step};

const NOW: Now = Now {
    wall: Timestamp::UNIX_EPOCH,
    uptime: Duration::ZERO,
};
const SPANS: Spans = Spans {
    ended_retention: Duration::ZERO,
};

fn id() -> SandboxId {
    "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap()
}

/// A record that these events befell.
fn record(events: &[Event]) -> Arc<Record> {
    let origin = Origin {
        image: "host".to_owned(),
        entrypoint: vec!["true".to_owned()],
        ..Origin::default()
    };
    let mut record = Record::new(id(), origin, BTreeMap::new(), None, NOW);
    for event in events {
        record = step(record, event, NOW, SPANS).unwrap().0;
    }
    Arc::new(record)
}

fn observed(phase: Phase) -> Observed {
    Observed {
        id: id(),
        phase,
        unenforced: Vec::new(),
        image_digest: String::new(),
    }
}

#[test]
fn records_and_observations_meet() {
    let started = Event::Started {
        unenforced: Vec::new(),
        image_digest: String::new(),
    };
    let creating = vec![];
    let running = vec![started.clone()];
    let paused = vec![started.clone(), Event::Paused];
    let parked = vec![started.clone(), Event::Parked];
    let ended = vec![started.clone(), Event::Lost { revision: 1 }];
    let removing = vec![started, Event::Unwanted];
    let exit = || Phase::Ended(EndReason::Exit(1));
    for (events, phase, expected) in [
        (&creating, None, "None"),
        (&creating, Some(Phase::Running), "None"),
        (&running, Some(Phase::Running), "None"),
        (&running, None, "Lost"),
        (&running, Some(Phase::Paused), "Seen"),
        (&running, Some(exit()), "Ended"),
        (&paused, Some(Phase::Paused), "None"),
        (&paused, Some(Phase::Running), "Seen"),
        (&paused, None, "Lost"),
        (&paused, Some(exit()), "Ended"),
        (&running, Some(Phase::Parked), "Seen"),
        (&paused, Some(Phase::Parked), "Seen"),
        (&parked, Some(Phase::Parked), "None"),
        (&parked, Some(Phase::Running), "Seen"),
        (&parked, None, "Lost"),
        (&parked, Some(exit()), "Ended"),
        (&ended, Some(Phase::Parked), "Stray"),
        (&ended, Some(exit()), "None"),
        (&ended, None, "None"),
        (&ended, Some(Phase::Running), "Stray"),
        (&ended, Some(Phase::Paused), "Stray"),
        (&removing, Some(Phase::Running), "None"),
        (&removing, None, "None"),
    ] {
        let told = format!("{events:?} {phase:?}");
        let list: Vec<Observed> = phase.map(observed).into_iter().collect();
        let word = match compare(&[record(events)], &list, |_| true).as_slice() {
            [] => "None",
            [Finding::Apply(_, Event::Lost { .. })] => "Lost",
            [Finding::Apply(_, Event::Seen { .. })] => "Seen",
            [Finding::Ended(..)] => "Ended",
            [Finding::Stray(_)] => "Stray",
            other => panic!("{other:?}"),
        };
        assert_eq!(word, expected, "{told}");
    }
}

#[test]
fn only_what_has_no_record_at_all_is_a_stray() {
    let list = [observed(Phase::Running)];
    assert_eq!(compare(&[], &list, |_| false), [Finding::Stray(id())]);
    assert_eq!(
        compare(&[], &list, |_| true),
        [],
        "made while the runtime was asked"
    );
}
