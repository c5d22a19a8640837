//! Load.

use std::time::Duration;

use crate::world::{World, stopwatch};

#[test]
fn figures_are_complete_plausible_and_never_waited_for() {
    let world = World::new();
    let waited = stopwatch();
    for _ in 0..20 {
        let metrics = world.get("/metrics").json();
        let number = |name: &str| {
            metrics[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{metrics}"))
        };
        assert!(number("cpu_count") > 0.0);
        assert!((0.0..=100.0).contains(&number("cpu_used_pct")));
        assert!(number("mem_used_mib") > 0.0 && number("mem_used_mib") <= number("mem_total_mib"));
        assert!(number("timestamp") > 1.7e12);
    }
    assert!(waited() < Duration::from_secs(2), "{:?}", waited());
}

#[test]
fn a_watch_is_a_line_every_two_seconds() {
    let world = World::new();
    let mut open = world.open("GET", "/metrics/watch", &[], None);
    assert!(
        open.headers
            .contains(&("content-type".to_owned(), "text/event-stream".to_owned()))
    );
    let waited = stopwatch();
    for _ in 0..2 {
        let line = open.piece().unwrap().unwrap();
        assert!(line.ends_with(b"}\n"));
        serde_json::from_slice::<serde_json::Value>(&line).unwrap();
    }
    assert!(
        (1500..4000).contains(&waited().as_millis()),
        "{:?}",
        waited()
    );
}
