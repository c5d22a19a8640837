//! Pauses to disk in the table.

use super::*;

#[test]
fn pauses_to_disk_in_the_transition_table() {
    use State::{Creating, Parked, Paused, Running};
    hold(&[
        (Running, seen(Phase::Parked, Some(0)), "Parked [Save, Arm]"),
        (Running, seen(Phase::Parked, Some(7)), "refused Nothing"),
        (Running, seen(Phase::Running, Some(0)), "refused Nothing"),
        (Paused, seen(Phase::Parked, Some(0)), "Parked [Save, Arm]"),
        (Parked, seen(Phase::Parked, Some(0)), "refused Nothing"),
        (Parked, seen(Phase::Running, Some(0)), "Running [Save, Arm]"),
        (
            Parked,
            seen(Phase::Ended(EndReason::LauncherLost), None),
            "Ended(launcher_lost) [Save, Arm]",
        ),
        (
            Parked,
            Event::Lost { revision: 0 },
            "Ended(lost) [Save, Arm]",
        ),
        (ended(), seen(Phase::Parked, Some(0)), "refused Nothing"),
        (Creating, Event::Parked, "refused NotRunning"),
        (Running, Event::Parked, "Parked [Save, Arm]"),
        (Paused, Event::Parked, "refused NotRunning"),
        (Parked, Event::Parked, "refused NotRunning"),
        (Parked, Event::Paused, "refused NotRunning"),
        (ended(), Event::Parked, "refused NotRunning"),
        (Parked, Event::Resumed, "Running [Save, Arm]"),
        (Parked, Event::Renewed(time(900)), "Parked [Save, Arm]"),
        (Parked, Event::Accessed, "refused Nothing"),
        (Parked, Event::Unwanted, "Removing(killed) [Bury, Delete]"),
        (
            Parked,
            Event::HostRestarted,
            "Ended(host_restart) [Save, Arm]",
        ),
    ]);
}

#[test]
fn a_pause_to_disk_is_told_as_a_pause_and_how() {
    let (parked, _) = step(record(State::Running), &Event::Parked, at(1), SPANS).unwrap();
    let (resumed, _) = step(parked, &Event::Resumed, at(2), SPANS).unwrap();
    let told: Vec<_> = resumed.history().iter().rev().take(2).rev().collect();
    assert_eq!(
        (told[0].what, told[1].what),
        (Happened::Paused, Happened::Resumed)
    );
    assert!(told[0].message.contains("to disk") && told[1].message.is_empty());
}

#[test]
fn who_is_paused_to_disk_is_not_idle_and_ends_at_its_time() {
    let mut parked = record(State::Parked);
    parked.origin_mut().idle_timeout_s = Some(100);
    for (seconds, expected) in [
        (500, "refused Nothing"),
        (600, "Removing(ttl) [Bury, Delete]"),
    ] {
        assert_eq!(looked_at(parked.clone(), 500, seconds), expected);
    }
    // The next server reads what this one kept.
    let kept = serde_json::to_string(&parked).unwrap();
    let read: Record = serde_json::from_str(&kept).unwrap();
    assert_eq!(*read.state(), State::Parked);
}
