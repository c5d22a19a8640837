use std::time::Duration;

use barchan_daemon::clock::Clock;
use jiff::Timestamp;

use super::sandboxes::PARTS;
use super::*;

fn operations() -> Vec<String> {
    ["create", "other"].map(str::to_owned).into()
}

fn text(metrics: &Metrics) -> String {
    let (clock, _) = Clock::manual(Timestamp::UNIX_EPOCH);
    Metrics::text(&metrics.gather(&Looked::default(), clock.now(), clock.now()))
}

#[test]
fn the_page_of_all_figures_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/metrics.md"
    );
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == reference(),
        "run `barchan config metrics > docs/reference/metrics.md`"
    );
}

#[test]
fn every_declared_figure_is_exposed_from_the_start() {
    let metrics = Metrics::new(&operations()).unwrap();
    let text = text(&metrics);
    for figure in &metrics.described {
        let kind = format!("# TYPE {} {}\n", figure.name, figure.kind);
        assert!(text.contains(&kind), "{kind}");
    }
    assert_eq!(text.matches("# TYPE ").count(), metrics.described.len());
}

#[test]
fn no_words_of_strangers_become_series() {
    let metrics = Metrics::new(&operations()).unwrap();
    let before = text(&metrics).lines().count();
    for number in 0..100 {
        let name = format!("made-up-{number}");
        metrics
            .requests
            .count(&name, Answered::With(200), Duration::ZERO);
        metrics.sandboxes.created(false, &name, None);
    }
    for status in [0, 99, 100, 204, 307, 404, 599, 999, u16::MAX] {
        metrics
            .requests
            .count("create", Answered::With(status), Duration::ZERO);
    }
    metrics
        .requests
        .count("create", Answered::Aborted, Duration::from_secs(100));
    let text = text(&metrics);
    assert_eq!(text.lines().count(), before, "{text}");
    for line in [
        "barchan_requests_total{operation=\"create\",status=\"1xx\"} 3\n",
        "barchan_requests_total{operation=\"create\",status=\"2xx\"} 1\n",
        "barchan_requests_total{operation=\"create\",status=\"5xx\"} 3\n",
        "barchan_requests_total{operation=\"create\",status=\"aborted\"} 1\n",
        "barchan_request_seconds_count{operation=\"create\"} 10\n",
        "barchan_request_seconds_bucket{operation=\"create\",le=\"60\"} 9\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn every_part_of_a_create_has_its_figure() {
    let metrics = Metrics::new(&operations()).unwrap();
    for part in PARTS {
        metrics.sandboxes.took(part, Duration::from_millis(3));
    }
    let text = text(&metrics);
    for phase in ["record", "runtime", "settle"] {
        let line = format!("barchan_sandbox_create_phase_seconds_count{{phase=\"{phase}\"}} 1\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}
