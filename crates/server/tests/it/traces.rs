//! Spans and figures that are sent to a collector, and what a bad collector costs.

use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;

use crate::collector::{self, Collector, Mood};
use crate::guest::echo;
use crate::world::{Set, World, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

async fn world(settings: &'static str) -> World {
    let (guest, _) = echo();
    let set = Set {
        settings,
        guest: Some(guest),
        ..Set::default()
    };
    World::with(&set).await
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    let found = span.attributes.iter().find(|it| it.key == key);
    match found.and_then(|it| it.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => "",
    }
}

/// The figure of this line's beginning.
async fn figure(world: &World, line: &str) -> u64 {
    let answer = world.call("GET", "/metrics").send().await;
    let found = answer.text().lines().find_map(|it| it.strip_prefix(line));
    found
        .unwrap_or_else(|| panic!("no {line}"))
        .trim()
        .parse()
        .unwrap()
}

const GIVEN_UP: &str = "barchan_otlp_dropped_total{reason=\"collector\",signal=\"spans\"}";
const TAKEN: &str = "barchan_otlp_sent_total{signal=\"spans\"}";

#[tokio::test]
async fn a_callers_trace_goes_on_through_the_server_into_the_sandbox() {
    let collector = Collector::new(Mood::Good).await;
    let headers = "otlp_headers = [\"authorization=Bearer of-the-collector\"]";
    let mut world = world(collector.settings(headers)).await;
    let request = crate::world::request(&serde_json::json!({}));
    let create = world.call("POST", "/v1/sandboxes").json(&request);
    let made = create.header("traceparent", &parent("01")).send().await;
    let id = made.json()["id"].as_str().unwrap().parse().unwrap();
    let mut inside = Vec::new();
    for port in [44772, 8080] {
        let call = world.inside(&id, port, "GET", "/show").await;
        let call = call
            .header("traceparent", &parent("01"))
            .header("tracestate", "a=b");
        let told = call.header("x-request-id", "mine").send().await;
        inside.push(told.text().to_owned());
    }
    world.stop().await;
    let spans = collector.spans();
    let named = |name: &str| {
        let found = spans.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
    };
    let asked = named("POST /v1/sandboxes");
    let create = named("sandbox.create");
    assert_eq!(hex::encode(&asked.parent_span_id), CALLER);
    assert_eq!(create.parent_span_id, asked.span_id);
    assert_eq!(text(create, "barchan.sandbox.id"), id.to_string());
    for part in ["record", "runtime", "settle"] {
        let part = named(&format!("sandbox.create.{part}"));
        assert_eq!(part.parent_span_id, create.span_id);
    }
    let of_ours = spans
        .iter()
        .filter(|it| hex::encode(&it.trace_id) == TRACE)
        .count();
    assert_eq!(of_ours, 7, "two more of what went inside: {spans:#?}");
    let ports = spans
        .iter()
        .filter(|it| it.name == "GET /sandboxes/{sandboxId}/proxy/{port}");
    let ours: Vec<String> = ports.map(|it| hex::encode(&it.span_id)).collect();
    for (told, span) in inside.iter().zip(&ours) {
        let passed = format!("traceparent: 00-{TRACE}-{span}-01");
        assert!(
            told.contains(&passed) && told.contains("tracestate: a=b"),
            "{told}"
        );
        assert!(told.contains("x-request-id: mine"), "{told}");
    }
    let sent = collector.sent();
    let first = sent.iter().find(|it| it.path == "/v1/traces").unwrap();
    assert_eq!(first.headers["authorization"], "Bearer of-the-collector");
    assert_eq!(first.headers["content-type"], "application/x-protobuf");
}

#[tokio::test]
async fn the_span_of_a_stream_lasts_as_long_as_the_stream() {
    let collector = Collector::new(Mood::Good).await;
    let world = world(collector.settings("otlp_metrics_interval_s = 0")).await;
    let id = world.sandbox().await;
    let mut drip = world.inside(&id, 8080, "GET", "/drip").await.begin().await;
    drip.piece().await.unwrap();
    world.hand.advance(Duration::from_secs(7));
    drip.piece().await.unwrap();
    let name = "GET /sandboxes/{sandboxId}/proxy/{port}";
    let found = || collector.spans().into_iter().find(|it| it.name == name);
    assert!(found().is_none(), "it goes on");
    drop(drip);
    until("it is over", async || found().is_some()).await;
    let span = found().unwrap();
    let took = span.end_time_unix_nano - span.start_time_unix_nano;
    assert_eq!(took, 7_000_000_000, "{span:?}");
}

#[tokio::test]
async fn who_decides_for_a_trace_is_obeyed_and_nonsense_begins_a_new_one() {
    let collector = Collector::new(Mood::Good).await;
    let mut world = world(collector.settings("trace_ratio = 0.0")).await;
    let id = world.sandbox().await;
    let mut told = Vec::new();
    for sent in [
        "",
        &parent("00"),
        &parent("01"),
        "00-nonsense-01",
        &parent("01x"),
    ] {
        let call = world.inside(&id, 44772, "GET", "/show").await;
        let call = match sent {
            "" => call,
            sent => call.header("traceparent", sent).header("tracestate", "a=b"),
        };
        let shown = call.send().await.text().to_owned();
        let line = shown
            .lines()
            .find(|it| it.contains("traceparent"))
            .unwrap_or_default();
        let is_ours = line.contains(TRACE);
        told.push((is_ours, line.ends_with("-01"), shown.contains("tracestate")));
        assert!(
            line.contains("00-") && !line.contains("nonsense"),
            "{shown}"
        );
    }
    let none = (false, false, false);
    assert_eq!(
        told,
        [none, (true, false, true), (true, true, true), none, none]
    );
    world.stop().await;
    let spans = collector.spans();
    assert_eq!(
        spans.len(),
        1,
        "only what the caller wants collected: {spans:#?}"
    );
}

#[tokio::test]
async fn without_a_collector_a_callers_trace_is_passed_on_as_it_is() {
    let world = world("").await;
    let id = world.sandbox().await;
    let call = world.inside(&id, 8080, "GET", "/show").await;
    let told = call.header("traceparent", "of-their-own-make").send().await;
    assert!(told.text().contains("traceparent: of-their-own-make"));
    assert!(
        !told.text().contains("x-request-id"),
        "no program asked for that"
    );
    let told = world.inside(&id, 44772, "GET", "/show").await.send().await;
    let id = told.header("x-request-id");
    assert!(
        told.text().contains(&format!("x-request-id: {id}")),
        "{}",
        told.text()
    );
}

#[tokio::test]
async fn what_a_collector_refuses_is_counted_and_nothing_waits_for_it() {
    let collector = Collector::new(Mood::Refusing(503)).await;
    let world = world(collector.settings("otlp_metrics_interval_s = 0")).await;
    for _ in 0..20 {
        assert_eq!(world.bare("GET", "/health").send().await.status, 200);
    }
    until("they are given up", async || {
        figure(&world, GIVEN_UP).await >= 20
    })
    .await;
    assert_eq!(figure(&world, TAKEN).await, 0);
    assert!(collector.sent().len() >= 3, "it is tried again");
    collector.become_of(Mood::Good);
    world.bare("GET", "/version").send().await;
    until("they are taken again", async || {
        figure(&world, TAKEN).await > 0
    })
    .await;
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_spans_alone() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let mut world = world(collector::settings(address, "")).await;
    let id = world.sandbox().await;
    let call = world.inside(&id, 44772, "GET", "/show").await;
    assert_eq!(call.send().await.status, 200);
    until("they are given up", async || {
        figure(&world, GIVEN_UP).await > 0
    })
    .await;
    world.stop().await;
}

#[tokio::test]
async fn a_silent_collector_holds_up_neither_requests_nor_the_end() {
    let collector = Collector::new(Mood::Silent).await;
    let mut world = world(collector.settings("")).await;
    let id = world.sandbox().await;
    world.bare("GET", "/health").send().await;
    until("it is sent something", async || {
        !collector.sent().is_empty()
    })
    .await;
    for _ in 0..50 {
        assert_eq!(world.get(&id).await.status, 200);
    }
    // Within the patience of `stop`, though the collector never answers.
    world.stop().await;
}

#[tokio::test]
async fn a_collector_that_lies_costs_spans_and_nothing_else() {
    for (mood, is_taken) in [
        (Mood::Lying, false),
        (Mood::Endless, true),
        (Mood::Babbling, false),
        (Mood::Refusing(400), false),
        (Mood::Refusing(307), false),
    ] {
        let collector = Collector::new(mood).await;
        let world = world(collector.settings("otlp_metrics_interval_s = 0")).await;
        world.bare("GET", "/health").send().await;
        let line = if is_taken { TAKEN } else { GIVEN_UP };
        until(&format!("{mood:?}"), async || {
            figure(&world, line).await > 0
        })
        .await;
        assert_eq!(world.bare("GET", "/health").send().await.status, 200);
    }
}

#[tokio::test]
async fn what_is_left_is_sent_at_the_end_figures_included() {
    let collector = Collector::new(Mood::Good).await;
    let mut world = world(collector.settings("service_name = \"of-this-test\"")).await;
    let exposed = world.call("GET", "/metrics").send().await;
    world.stop().await;
    let names = |span: &Span| span.name.clone();
    let spans: Vec<String> = collector.spans().iter().map(names).collect();
    assert!(spans.contains(&"GET /metrics".to_owned()), "{spans:?}");
    let figures = collector.figures();
    let declared = exposed
        .text()
        .lines()
        .filter_map(|it| it.strip_prefix("# TYPE "));
    let mut count = 0;
    for (name, kind) in declared.filter_map(|it| it.split_once(' ')) {
        let figure = figures.iter().find(|it| it.name == name);
        let data = figure.and_then(|it| it.data.as_ref());
        let is_same = match data {
            Some(Data::Sum(sum)) => kind == "counter" && sum.is_monotonic,
            Some(Data::Gauge(_)) => kind == "gauge",
            Some(Data::Histogram(all)) => {
                let adds_up = all.data_points.iter().all(|it| {
                    it.bucket_counts.iter().sum::<u64>() == it.count
                        && it.bucket_counts.len() == it.explicit_bounds.len() + 1
                });
                kind == "histogram" && adds_up
            }
            _ => false,
        };
        assert!(is_same, "{name} {kind}: {data:?}");
        count += 1;
    }
    assert!(
        count > 15 && figures.len() == count,
        "{count} of {}",
        figures.len()
    );
}

#[tokio::test]
async fn figures_are_sent_at_their_interval() {
    let collector = Collector::new(Mood::Good).await;
    let set = "otlp_traces = false\notlp_metrics_interval_s = 5";
    let world = world(collector.settings(set)).await;
    world.bare("GET", "/health").send().await;
    until("figures come", async || {
        world.hand.advance(Duration::from_secs(5));
        collector.sent().len() >= 2
    })
    .await;
    assert!(collector.sent().iter().all(|it| it.path == "/v1/metrics"));
}
