//! Pure. Spans and figures in the words of OTLP.

use std::time::Duration;

use barchan_daemon::clock::Now;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1 as resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span, status,
};
use prometheus::proto::{self, LabelPair, MetricFamily, MetricType};
use prost::Message;
use uuid::Uuid;

use crate::observe::span::{Finished, Kind, Value};

/// Who says it.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    resource: resource::Resource,
    started: Now,
}

impl Resource {
    /// This run of the server, under a name.
    pub(super) fn new(service: &str, started: Now) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let run = Uuid::new_v4().to_string();
        let attributes = vec![
            text("service.name", service),
            text("service.version", version),
            text("service.instance.id", &run),
        ];
        let resource = resource::Resource {
            attributes,
            ..Default::default()
        };
        Self { resource, started }
    }
}

/// The body of `/v1/traces`.
pub(super) fn spans(from: &Resource, spans: &[Finished]) -> Bytes {
    let scope_spans = ScopeSpans {
        scope: Some(scope()),
        spans: spans.iter().map(one_span).collect(),
        ..Default::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(from.resource.clone()),
            scope_spans: vec![scope_spans],
            ..Default::default()
        }],
    };
    request.encode_to_vec().into()
}

/// How many spans the collector says it did not take. What is no such answer says nothing.
pub(super) fn refused_spans(answer: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let refused = answer.partial_success.map(|it| it.rejected_spans);
    u64::try_from(refused.unwrap_or_default()).unwrap_or_default()
}

/// The body of `/v1/metrics`.
pub(super) fn figures(from: &Resource, families: &[MetricFamily], now: Now) -> Bytes {
    let times = Times {
        start: nanos(from.started),
        now: nanos(now),
    };
    let scope_metrics = ScopeMetrics {
        scope: Some(scope()),
        metrics: families.iter().map(|family| times.figure(family)).collect(),
        ..Default::default()
    };
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(from.resource.clone()),
            scope_metrics: vec![scope_metrics],
            ..Default::default()
        }],
    };
    request.encode_to_vec().into()
}

fn one_span(of: &Finished) -> Span {
    let start = nanos(of.began);
    let kind = match of.kind {
        Kind::Server => span::SpanKind::Server,
        Kind::Internal => span::SpanKind::Internal,
    };
    let attribute = |(key, value): &(&'static str, Value)| match value {
        Value::Text(value) => text(key, value),
        Value::Number(value) => attribute(key, any_value::Value::IntValue(*value)),
    };
    let failure = of.failure.as_ref().map(|why| Status {
        message: why.clone(),
        code: status::StatusCode::Error.into(),
    });
    Span {
        trace_id: of.context.trace_id().to_vec(),
        span_id: of.context.span_id().to_vec(),
        trace_state: of.context.state().unwrap_or_default().to_owned(),
        parent_span_id: of.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        name: of.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(count(of.took)),
        attributes: of.attributes.iter().map(attribute).collect(),
        status: failure,
        ..Default::default()
    }
}

/// From when to when figures hold.
struct Times {
    start: u64,
    now: u64,
}

impl Times {
    fn figure(&self, family: &MetricFamily) -> Metric {
        let points = family.get_metric().iter();
        let cumulative = AggregationTemporality::Cumulative.into();
        let data = match family.get_field_type() {
            MetricType::COUNTER => metric::Data::Sum(Sum {
                data_points: points
                    .map(|it| self.number(it, it.get_counter().get_value()))
                    .collect(),
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            MetricType::HISTOGRAM => metric::Data::Histogram(Histogram {
                data_points: points.map(|it| self.histogram(it)).collect(),
                aggregation_temporality: cumulative,
            }),
            _ => metric::Data::Gauge(Gauge {
                data_points: points
                    .map(|it| self.number(it, it.get_gauge().get_value()))
                    .collect(),
            }),
        };
        let name = family.name();
        let unit = match name {
            _ if name.ends_with("_seconds") => "s",
            _ if name.contains("_bytes") => "By",
            _ => "1",
        };
        Metric {
            name: name.to_owned(),
            description: family.help().to_owned(),
            unit: unit.to_owned(),
            data: Some(data),
            ..Default::default()
        }
    }

    fn number(&self, of: &proto::Metric, value: f64) -> NumberDataPoint {
        NumberDataPoint {
            attributes: labels(of.get_label()),
            start_time_unix_nano: self.start,
            time_unix_nano: self.now,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..Default::default()
        }
    }

    fn histogram(&self, of: &proto::Metric) -> HistogramDataPoint {
        let histogram = of.get_histogram();
        let total = histogram.get_sample_count();
        let finite = histogram
            .get_bucket()
            .iter()
            .filter(|it| it.upper_bound().is_finite());
        let (mut counts, mut bounds, mut before) = (Vec::new(), Vec::new(), 0);
        for bucket in finite {
            let so_far = bucket.cumulative_count();
            counts.push(so_far.saturating_sub(before));
            bounds.push(bucket.upper_bound());
            before = so_far;
        }
        counts.push(total.saturating_sub(before));
        HistogramDataPoint {
            attributes: labels(of.get_label()),
            start_time_unix_nano: self.start,
            time_unix_nano: self.now,
            count: total,
            sum: Some(histogram.get_sample_sum()),
            bucket_counts: counts,
            explicit_bounds: bounds,
            ..Default::default()
        }
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "barchan".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
}

fn labels(pairs: &[LabelPair]) -> Vec<KeyValue> {
    let pair = |pair: &LabelPair| text(pair.name(), pair.value());
    pairs.iter().map(pair).collect()
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

/// Nanoseconds since 1970.
fn nanos(at: Now) -> u64 {
    u64::try_from(at.wall.as_nanosecond()).unwrap_or_default()
}

fn count(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
