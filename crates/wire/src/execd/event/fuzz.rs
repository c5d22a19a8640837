use barchan_testkit::{fuzz, inputs};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::any;
use proptest::sample::select;

use super::*;

const NAMES: &[&str] = &[
    "type",
    "text",
    "timestamp",
    "execution_time",
    "execution_count",
    "results",
    "error",
    "ename",
    "evalue",
    "traceback",
    "stdout",
    "init",
];
const KINDS: &[EventKind] = &[
    EventKind::Init,
    EventKind::Stdout,
    EventKind::Stderr,
    EventKind::Error,
    EventKind::Ping,
    EventKind::ExecutionComplete,
    EventKind::Result,
];

fuzz! {
    fn events_are_one_line_and_come_back_whole(
        kind in select(KINDS),
        text in any::<String>(),
        timestamp in any::<u64>(),
        execution_time in option::of(any::<u64>()),
        error in option::of((any::<String>(), any::<String>(), vec(any::<String>(), 0..3))),
    ) {
        let mut event = Event::new(kind, text, timestamp);
        event.execution_time = execution_time;
        event.error = error.map(|(ename, evalue, traceback)| EventError {
            ename,
            evalue,
            traceback,
        });
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains(['\n', '\r']));
        assert_eq!(serde_json::from_str::<Event<'_>>(&line).unwrap(), event);
    }

    fn any_json_is_an_event_or_none(value in inputs::json(NAMES)) {
        let text = value.to_string();
        if let Ok(event) = serde_json::from_str::<Event<'_>>(&text) {
            let again = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event<'_>>(&again).unwrap(), event);
        }
    }
}
