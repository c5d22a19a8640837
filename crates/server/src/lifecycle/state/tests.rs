mod pauses;

use barchan_runtime::EndReason;
use jiff::Timestamp;

use super::*;

const SPANS: Spans = Spans {
    ended_retention: Duration::from_secs(3600),
};

fn at(seconds: u64) -> Now {
    Now {
        wall: Timestamp::from_second(1_900_000_000 + i64::try_from(seconds).unwrap()).unwrap(),
        uptime: Duration::from_secs(500 + seconds),
    }
}

fn time(seconds: u64) -> Time {
    Time::new(at(seconds).wall)
}

/// A record in a state, with 600 s to live.
fn record(state: State) -> Record {
    let origin = Origin {
        image: "host".to_owned(),
        entrypoint: vec!["true".to_owned()],
        ..Origin::default()
    };
    let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
    let mut record = Record::new(id, origin, BTreeMap::new(), Some(time(600)), at(0));
    record.enter(state, at(0));
    record
}

fn started() -> Event {
    Event::Started {
        unenforced: vec!["cpu".to_owned()],
        image_digest: "sha256:0".to_owned(),
    }
}

fn seen(phase: Phase, revision: Option<u64>) -> Event {
    Event::Seen {
        phase,
        tail: "boom".to_owned(),
        revision,
    }
}

const CHECKED: Event = Event::Checked {
    idle: Duration::ZERO,
};

fn ended() -> State {
    State::Ended(End::lost())
}

/// The state that follows in one word, or the refusal.
fn word(result: &Result<(Record, &'static [Action]), Refusal>) -> String {
    match result {
        Err(refusal) => format!("refused {refusal:?}"),
        Ok((record, actions)) => {
            let state = match record.state() {
                State::Ended(end) => format!("Ended({})", end.reason),
                State::Removing(end) => format!("Removing({})", end.cause.as_str()),
                other => format!("{other:?}"),
            };
            format!("{state} {actions:?}")
        }
    }
}

/// Holds rows of the table: a state, an event, what follows.
fn hold(rows: &[(State, Event, &str)]) {
    for (state, event, expected) in rows {
        let told = format!("{state:?} + {event:?}");
        let result = step(record(state.clone()), event, at(0), SPANS);
        assert_eq!(word(&result), *expected, "{told}");
    }
}

#[test]
fn the_transition_table() {
    use State::{Creating, Paused, Running};
    let exit = |code| Phase::Ended(EndReason::Exit(code));
    hold(&[
        (Creating, started(), "Running [Save, Arm]"),
        (
            Creating,
            Event::NotStarted,
            "Removing(create_failed) [Forget]",
        ),
        (
            Creating,
            Event::Interrupted,
            "Ended(create_interrupted) [Save, Arm]",
        ),
        (
            Creating,
            seen(exit(3), None),
            "Ended(CONTAINER_EXITED_ERROR) [Save, Arm]",
        ),
        (Creating, seen(Phase::Running, Some(0)), "refused Nothing"),
        (Creating, Event::Lost { revision: 0 }, "refused Nothing"),
        (Creating, Event::Paused, "refused NotRunning"),
        (ended(), started(), "Ended(lost) [Save, Arm]"),
        (
            Running,
            seen(exit(0), None),
            "Ended(CONTAINER_EXITED) [Save, Arm]",
        ),
        (
            Running,
            seen(Phase::Ended(EndReason::Oom), None),
            "Ended(oom) [Save, Arm]",
        ),
        (
            Paused,
            seen(Phase::Ended(EndReason::LauncherLost), None),
            "Ended(launcher_lost) [Save, Arm]",
        ),
        (Running, seen(Phase::Paused, Some(0)), "Paused [Save, Arm]"),
        (Running, seen(Phase::Paused, Some(7)), "refused Nothing"),
        (Running, seen(Phase::Paused, None), "refused Nothing"),
        (Paused, seen(Phase::Running, Some(0)), "Running [Save, Arm]"),
        (
            Running,
            Event::Lost { revision: 0 },
            "Ended(lost) [Save, Arm]",
        ),
        (Running, Event::Lost { revision: 1 }, "refused Nothing"),
        (ended(), Event::Lost { revision: 0 }, "refused Nothing"),
        (ended(), seen(exit(1), None), "refused Nothing"),
    ]);
}

#[test]
fn callers_verbs_in_the_transition_table() {
    use State::{Creating, Paused, Running};
    let removing = || State::Removing(End::killed());
    hold(&[
        (Running, Event::Interrupted, "refused Nothing"),
        (Running, Event::Paused, "Paused [Save, Arm]"),
        (Paused, Event::Paused, "refused NotRunning"),
        (ended(), Event::Paused, "refused NotRunning"),
        (Paused, Event::Resumed, "Running [Save, Arm]"),
        (Running, Event::Resumed, "refused NotPaused"),
        (Paused, Event::Renewed(time(900)), "Paused [Save, Arm]"),
        (Running, Event::Renewed(time(0)), "refused Past"),
        (
            Running,
            Event::Labelled(BTreeMap::new()),
            "Running [Save, Arm]",
        ),
        (
            Running,
            Event::HostRestarted,
            "Ended(host_restart) [Save, Arm]",
        ),
        (
            Paused,
            Event::HostRestarted,
            "Ended(host_restart) [Save, Arm]",
        ),
        (ended(), Event::HostRestarted, "refused Nothing"),
        (Running, Event::Accessed, "refused Nothing"),
        (Running, Event::Surplus, "refused Nothing"),
        (Creating, Event::Unwanted, "Removing(killed) [Bury, Delete]"),
        (Paused, Event::Unwanted, "Removing(killed) [Bury, Delete]"),
        (ended(), Event::Unwanted, "Removing(lost) [Bury, Delete]"),
        (Running, CHECKED, "refused Nothing"),
        (removing(), started(), "refused Gone"),
        (removing(), Event::Unwanted, "refused Gone"),
        (removing(), Event::Renewed(time(900)), "refused Gone"),
        (removing(), CHECKED, "refused Gone"),
    ]);
}

#[test]
fn time_to_live_counts_in_every_state_and_against_the_last_deadline() {
    use State::{Creating, Parked, Paused, Running};
    for state in [Creating, Running, Paused, Parked, ended()] {
        let due = |record: Record, seconds| step(record, &CHECKED, at(seconds), SPANS);
        let alive = record(state);
        assert_eq!(due(alive.clone(), 599), Err(Refusal::Nothing));
        let gone = |record: Record| matches!(record.state(), State::Removing(_));
        assert!(gone(due(alive.clone(), 600).unwrap().0));
        let (renewed, _) = step(alive, &Event::Renewed(time(700)), at(599), SPANS).unwrap();
        assert_eq!(
            due(renewed.clone(), 600),
            Err(Refusal::Nothing),
            "a late timer is no deadline"
        );
        assert!(gone(due(renewed, 700).unwrap().0));
    }
}

#[test]
fn a_sandbox_without_time_to_live_cannot_be_renewed_and_leaves_some_time_after_its_end() {
    let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
    let origin = record(State::Running).origin().clone();
    let mut eternal = Record::new(id, origin, BTreeMap::new(), None, at(0));
    eternal.enter(State::Running, at(0));
    let renewed = step(eternal.clone(), &Event::Renewed(time(900)), at(0), SPANS);
    assert_eq!(renewed, Err(Refusal::NeverExpires));
    assert_eq!(
        step(eternal.clone(), &CHECKED, at(1 << 30), SPANS),
        Err(Refusal::Nothing)
    );
    let (ended, _) = step(eternal, &Event::Lost { revision: 0 }, at(50), SPANS).unwrap();
    assert_eq!(
        step(ended.clone(), &CHECKED, at(3649), SPANS),
        Err(Refusal::Nothing)
    );
    assert!(step(ended, &CHECKED, at(3650), SPANS).is_ok());
}

#[test]
fn a_set_calendar_neither_kills_nor_spares() {
    let alive = record(State::Running);
    let jumped = Now {
        wall: Timestamp::MAX,
        ..at(10)
    };
    assert_eq!(
        step(alive.clone(), &CHECKED, jumped, SPANS),
        Err(Refusal::Nothing)
    );
    let back = Now {
        wall: Timestamp::UNIX_EPOCH,
        ..at(600)
    };
    assert!(step(alive, &CHECKED, back, SPANS).is_ok());
}

#[test]
fn after_a_restart_the_renewed_deadline_holds() {
    let (renewed, _) = step(
        record(State::Running),
        &Event::Renewed(time(900)),
        at(10),
        SPANS,
    )
    .unwrap();
    let kept = serde_json::to_string(&renewed).unwrap();
    let read: Record = serde_json::from_str(&kept).unwrap();
    // With the host the count begins anew, and the calendar is all there is to go by.
    let reboot = |seconds: u64| Now {
        uptime: Duration::from_secs(5),
        ..at(seconds)
    };
    // Else the calendar is not asked, wherever somebody has set it.
    let jumped = |seconds: u64| Now {
        wall: Timestamp::MAX,
        ..at(seconds)
    };
    for (now, host_restarted, is_over) in [
        (reboot(899), true, false),
        (reboot(901), true, true),
        (jumped(899), false, false),
        (jumped(900), false, true),
    ] {
        let woken = read.clone().woken(now, SPANS, host_restarted);
        let checked = step(woken, &CHECKED, now, SPANS);
        assert_eq!(checked.is_ok(), is_over, "{now:?}");
    }
}

#[test]
fn a_set_calendar_does_not_shorten_how_long_an_end_is_readable() {
    let lost = Event::Lost { revision: 0 };
    let (ended, _) = step(record(State::Running), &lost, at(50), SPANS).unwrap();
    let kept = serde_json::to_string(&ended).unwrap();
    let read: Record = serde_json::from_str(&kept).unwrap();
    for (seconds, is_over) in [(3649, false), (3650, true)] {
        let now = Now {
            wall: Timestamp::MAX,
            ..at(seconds)
        };
        assert_eq!(ended.is_forgettable(now, SPANS), is_over, "{seconds}");
        let woken = read.clone().woken(now, SPANS, false);
        assert_eq!(woken.is_forgettable(now, SPANS), is_over, "{seconds}");
    }
}

#[test]
fn an_end_names_code_and_last_output() {
    let exit = seen(Phase::Ended(EndReason::Exit(3)), None);
    let (ended, _) = step(record(State::Running), &exit, at(1), SPANS).unwrap();
    let State::Ended(end) = ended.state() else {
        panic!("{ended:?}")
    };
    assert_eq!(end.kind, EndKind::Failure);
    assert_eq!(
        end.message,
        "The entrypoint exited with code 3; its last output: boom"
    );
}

/// The word of what follows when a sandbox of these wishes is looked at.
fn looked_at(record: Record, idle_s: u64, seconds: u64) -> String {
    let idle = Duration::from_secs(idle_s);
    word(&step(record, &Event::Checked { idle }, at(seconds), SPANS))
}

#[test]
fn who_is_not_used_ends_unless_it_is_paused() {
    let mut idle = record(State::Running);
    idle.origin_mut().idle_timeout_s = Some(100);
    for (state, idle_s, seconds, expected) in [
        (State::Running, 99, 100, "Running [Arm]"),
        (State::Running, 100, 100, "Removing(idle) [Bury, Delete]"),
        (State::Running, 0, 600, "Removing(ttl) [Bury, Delete]"),
        (State::Paused, 500, 500, "refused Nothing"),
        (State::Paused, 500, 600, "Removing(ttl) [Bury, Delete]"),
        (State::Creating, 500, 500, "refused Nothing"),
        (ended(), 500, 500, "refused Nothing"),
    ] {
        let mut stands = idle.clone();
        stands.enter(state.clone(), at(0));
        stands.arm(at(0), SPANS, Duration::ZERO);
        let found = looked_at(stands, idle_s, seconds);
        assert_eq!(found, expected, "{state:?} idle for {idle_s} s");
    }
    let idle_for = Duration::from_secs(40);
    let (armed, _) = step(idle, &Event::Checked { idle: idle_for }, at(100), SPANS).unwrap();
    let next = armed.deadline().unwrap();
    assert_eq!(
        next,
        at(160).uptime,
        "looked at again when it could be idle"
    );
}

#[test]
fn uses_put_off_the_end_and_never_bring_it_nearer() {
    for (extend, now, expected) in [
        (None, 100, None),
        (Some(400), 100, None),
        (Some(400), 300, Some(time(700))),
    ] {
        let mut used = record(State::Running);
        used.origin_mut().renew_on_access_s = extend;
        let after = step(used, &Event::Accessed, at(now), SPANS);
        let expiry = after.ok().and_then(|(record, _)| record.expires_at());
        assert_eq!(expiry, expected, "{extend:?} at {now}");
    }
}

#[test]
fn what_happened_is_told_in_order_and_bounded() {
    let mut record = record(State::Creating);
    let mut words = Vec::new();
    let story = [
        started(),
        Event::Paused,
        Event::Resumed,
        Event::Renewed(time(900)),
        Event::Labelled(BTreeMap::new()),
        seen(Phase::Ended(EndReason::Oom), None),
        Event::Unwanted,
    ];
    for event in story {
        record = step(record, &event, at(1), SPANS).unwrap().0;
    }
    words.extend(record.history().iter().map(|it| it.what.as_str()));
    let expected = "created started paused resumed renewed labelled ended removed";
    assert_eq!(words.join(" "), expected);
    let grave = record.buried();
    let State::Ended(end) = grave.state() else {
        panic!("{grave:?}")
    };
    assert_eq!((end.cause, grave.since()), (Cause::Oom, time(1)));
    let mut record = self::record(State::Running);
    for _ in 0..200 {
        let labelled = Event::Labelled(BTreeMap::new());
        record = step(record, &labelled, at(1), SPANS).unwrap().0;
    }
    assert_eq!(record.history().len(), history::HAPPENINGS_MAX);
}

#[test]
fn a_sandbox_of_a_pool_is_surplus_until_somebody_gets_it() {
    let mut spare = record(State::Running);
    spare.origin_mut().pool = Some("p".to_owned());
    let removed = step(spare.clone(), &Event::Surplus, at(1), SPANS);
    assert_eq!(word(&removed), "Removing(killed) [Bury, Delete]");
    let allotted = Event::Allocated(Box::default());
    let (theirs, _) = step(spare, &allotted, at(1), SPANS).unwrap();
    for event in [Event::Surplus, allotted] {
        let again = step(theirs.clone(), &event, at(2), SPANS);
        assert_eq!(word(&again), "refused Nothing", "{event:?}");
    }
}
