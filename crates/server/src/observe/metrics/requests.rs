//! Requests: how many of which operation ended how, and after what time.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus::{Histogram, IntCounter, Result};

use super::make::{Maker, SHORT_S};

/// How requests end.
const ENDS: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "aborted"];

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// With this status.
    With(u16),
    /// Its caller went away before there was an answer.
    Aborted,
}

/// Counts requests.
pub(crate) struct Requests {
    by_operation: BTreeMap<String, One>,
}

struct One {
    ends: [IntCounter; ENDS.len()],
    seconds: Histogram,
}

impl Requests {
    pub(super) fn new(maker: &mut Maker, operations: &[String]) -> Result<Self> {
        let all = maker.counters(
            "barchan_requests_total",
            "Requests by operation and by the class of their status; `aborted` when the caller \
             went away before the answer began.",
            &["operation", "status"],
        )?;
        let times = maker.histograms(
            "barchan_request_seconds",
            "Time from a request's head to the beginning of its answer.",
            &SHORT_S,
            &["operation"],
        )?;
        let one = |operation: &String| {
            let ends: Result<Vec<IntCounter>> = ENDS
                .iter()
                .map(|end| all.get_metric_with_label_values(&[operation.as_str(), end]))
                .collect();
            let ends = ends?.try_into().map_err(|_| wrong())?;
            let seconds = times.get_metric_with_label_values(&[operation])?;
            Ok((operation.clone(), One { ends, seconds }))
        };
        let by_operation = operations.iter().map(one).collect::<Result<_>>()?;
        Ok(Self { by_operation })
    }

    /// Counts one request. One of no known operation is not counted, so that no name of a
    /// stranger's becomes a series.
    pub(crate) fn count(&self, operation: &str, answered: Answered, took: Duration) {
        let Some(one) = self.by_operation.get(operation) else {
            return;
        };
        let end = match answered {
            Answered::With(status) => usize::from(status / 100).saturating_sub(1).min(4),
            Answered::Aborted => ENDS.len() - 1,
        };
        if let Some(counter) = one.ends.get(end) {
            counter.inc();
        }
        one.seconds.observe(took.as_secs_f64());
    }
}

fn wrong() -> prometheus::Error {
    prometheus::Error::Msg("as many counters as ends".to_owned())
}
