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
        platform: None,
        extensions: BTreeMap::new(),
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
                other => format!("{other:?}"),
            };
            format!("{state} {actions:?}")
        }
    }
}

#[test]
fn the_transition_table() {
    use State::{Creating, Paused, Removing, Running};
    let exit = |code| Phase::Ended(EndReason::Exit(code));
    for (state, event, expected) in [
        (Creating, started(), "Running [Save]"),
        (Creating, Event::NotStarted, "Removing [Forget]"),
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
        (Running, seen(Phase::Paused, Some(0)), "Paused [Save]"),
        (Running, seen(Phase::Paused, Some(7)), "refused Nothing"),
        (Running, seen(Phase::Paused, None), "refused Nothing"),
        (Paused, seen(Phase::Running, Some(0)), "Running [Save]"),
        (
            Running,
            Event::Lost { revision: 0 },
            "Ended(lost) [Save, Arm]",
        ),
        (Running, Event::Lost { revision: 1 }, "refused Nothing"),
        (ended(), Event::Lost { revision: 0 }, "refused Nothing"),
        (ended(), seen(exit(1), None), "refused Nothing"),
        (Running, Event::Interrupted, "refused Nothing"),
        (Running, Event::Paused, "Paused [Save]"),
        (Paused, Event::Paused, "refused NotRunning"),
        (ended(), Event::Paused, "refused NotRunning"),
        (Paused, Event::Resumed, "Running [Save]"),
        (Running, Event::Resumed, "refused NotPaused"),
        (Paused, Event::Renewed(time(900)), "Paused [Save, Arm]"),
        (Running, Event::Renewed(time(0)), "refused Past"),
        (Running, Event::Labelled(BTreeMap::new()), "Running [Save]"),
        (Creating, Event::Unwanted, "Removing [Forget, Delete]"),
        (Paused, Event::Unwanted, "Removing [Forget, Delete]"),
        (ended(), Event::Unwanted, "Removing [Forget, Delete]"),
        (Running, Event::Checked, "refused Nothing"),
        (Removing, started(), "refused Gone"),
        (Removing, Event::Unwanted, "refused Gone"),
        (Removing, Event::Renewed(time(900)), "refused Gone"),
        (Removing, Event::Checked, "refused Gone"),
    ] {
        let told = format!("{state:?} + {event:?}");
        let result = step(record(state), event, at(0), SPANS);
        assert_eq!(word(&result), expected, "{told}");
    }
}

#[test]
fn time_to_live_counts_in_every_state_and_against_the_last_deadline() {
    for state in [State::Creating, State::Running, State::Paused, ended()] {
        let due = |record: Record, seconds| step(record, Event::Checked, at(seconds), SPANS);
        let alive = record(state);
        assert_eq!(due(alive.clone(), 599), Err(Refusal::Nothing));
        assert_eq!(due(alive.clone(), 600).unwrap().0.state(), &State::Removing);
        let (renewed, _) = step(alive, Event::Renewed(time(700)), at(599), SPANS).unwrap();
        assert_eq!(
            due(renewed.clone(), 600),
            Err(Refusal::Nothing),
            "a late timer is no deadline"
        );
        assert_eq!(due(renewed, 700).unwrap().0.state(), &State::Removing);
    }
}

#[test]
fn a_sandbox_without_time_to_live_cannot_be_renewed_and_leaves_some_time_after_its_end() {
    let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
    let origin = record(State::Running).origin().clone();
    let mut eternal = Record::new(id, origin, BTreeMap::new(), None, at(0));
    eternal.enter(State::Running, at(0));
    let renewed = step(eternal.clone(), Event::Renewed(time(900)), at(0), SPANS);
    assert_eq!(renewed, Err(Refusal::NeverExpires));
    assert_eq!(
        step(eternal.clone(), Event::Checked, at(1 << 30), SPANS),
        Err(Refusal::Nothing)
    );
    let (ended, _) = step(eternal, Event::Lost { revision: 0 }, at(50), SPANS).unwrap();
    assert_eq!(
        step(ended.clone(), Event::Checked, at(3649), SPANS),
        Err(Refusal::Nothing)
    );
    assert!(step(ended, Event::Checked, at(3650), SPANS).is_ok());
}

#[test]
fn a_set_calendar_neither_kills_nor_spares() {
    let alive = record(State::Running);
    let jumped = Now {
        wall: Timestamp::MAX,
        ..at(10)
    };
    assert_eq!(
        step(alive.clone(), Event::Checked, jumped, SPANS),
        Err(Refusal::Nothing)
    );
    let back = Now {
        wall: Timestamp::UNIX_EPOCH,
        ..at(600)
    };
    assert!(step(alive, Event::Checked, back, SPANS).is_ok());
}

#[test]
fn after_a_restart_the_renewed_deadline_holds() {
    let (renewed, _) = step(
        record(State::Running),
        Event::Renewed(time(900)),
        at(10),
        SPANS,
    )
    .unwrap();
    let kept = serde_json::to_string(&renewed).unwrap();
    let read: Record = serde_json::from_str(&kept).unwrap();
    let reboot = |seconds: u64| Now {
        uptime: Duration::from_secs(5),
        ..at(seconds)
    };
    let woken = read.clone().woken(reboot(899), SPANS);
    assert_eq!(
        step(woken, Event::Checked, reboot(899), SPANS),
        Err(Refusal::Nothing)
    );
    let woken = read.woken(reboot(901), SPANS);
    assert!(step(woken, Event::Checked, reboot(901), SPANS).is_ok());
}

#[test]
fn an_end_names_code_and_last_output() {
    let exit = seen(Phase::Ended(EndReason::Exit(3)), None);
    let (ended, _) = step(record(State::Running), exit, at(1), SPANS).unwrap();
    let State::Ended(end) = ended.state() else {
        panic!("{ended:?}")
    };
    assert_eq!(end.kind, EndKind::Failure);
    assert_eq!(
        end.message,
        "The entrypoint exited with code 3; its last output: boom"
    );
}
