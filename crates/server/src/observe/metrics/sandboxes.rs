//! Sandboxes: how creates went and how long they took, and why sandboxes ended.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, Result};

use super::make::{Maker, SHORT_S, each};
use crate::lifecycle::state::{Cause, End, EndKind};

/// How a create can go, for those who count.
pub(crate) const CREATED: [&str; 7] = [
    "ok", "full", "stopping", "refused", "runtime", "late", "store",
];

/// A part of making a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its record is kept.
    Record,
    /// The runtime makes it.
    Runtime,
    /// That it runs is kept.
    Settle,
}

/// All of them, in their order.
pub(crate) const PARTS: [Part; 3] = [Part::Record, Part::Runtime, Part::Settle];

/// All ways in which a pool answers, in their order.
const ALLOCATED: [Allocated; 3] = [Allocated::Given, Allocated::Exhausted, Allocated::Failed];

/// Who asked for a sandbox.
const ASKED_BY: [&str; 2] = ["caller", "pool"];

/// Counts sandboxes.
pub(crate) struct Sandboxes {
    /// By who asked, then by how it went.
    creates: [[IntCounter; CREATED.len()]; 2],
    create_seconds: Histogram,
    parts: [Histogram; PARTS.len()],
    allocations: [IntCounter; ALLOCATED.len()],
    /// By the cause's number: successes, then failures.
    ends: Vec<[IntCounter; 2]>,
}

/// How a sandbox was had from a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocated {
    /// One was given.
    Given,
    /// None was free in time.
    Exhausted,
    /// Something else stood in the way.
    Failed,
}

impl Allocated {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Given => "ok",
            Self::Exhausted => "exhausted",
            Self::Failed => "failed",
        }
    }
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Runtime => "runtime",
            Self::Settle => "settle",
        }
    }

    /// The name of its span.
    pub(crate) fn span_name(self) -> &'static str {
        match self {
            Self::Record => "sandbox.create.record",
            Self::Runtime => "sandbox.create.runtime",
            Self::Settle => "sandbox.create.settle",
        }
    }
}

impl Sandboxes {
    pub(super) fn new(maker: &mut Maker) -> Result<Self> {
        let creates = maker.counters(
            "barchan_sandbox_creates_total",
            "Sandboxes that were to be made, by who asked (`caller`, or a `pool` for itself) and \
             by what came of it.",
            &["asked_by", "result"],
        )?;
        let by = |asker: &str| -> Result<[IntCounter; CREATED.len()]> {
            let one = |result: &&str| creates.get_metric_with_label_values(&[asker, result]);
            let made: Result<Vec<IntCounter>> = CREATED.iter().map(one).collect();
            let wrong = |_| prometheus::Error::Msg("a counter for each result".to_owned());
            made?.try_into().map_err(wrong)
        };
        let [caller, pool] = ASKED_BY;
        let creates = [by(caller)?, by(pool)?];
        let create_seconds = maker.histogram(
            "barchan_sandbox_create_seconds",
            "Time from a create's being admitted until its sandbox runs; failed ones are left out.",
            &SHORT_S,
        )?;
        let times = maker.histograms(
            "barchan_sandbox_create_phase_seconds",
            "Time of each part of a create: the record is kept, the runtime makes the sandbox, \
             that it runs is kept.",
            &SHORT_S,
            &["phase"],
        )?;
        let part = |phase: Part| times.get_metric_with_label_values(&[phase.word()]);
        let [record, runtime, settle] = PARTS;
        let allocations = maker.counters(
            "barchan_pool_allocations_total",
            "Sandboxes that callers asked a pool for, by what came of it.",
            &["result"],
        )?;
        Ok(Self {
            creates,
            create_seconds,
            parts: [part(record)?, part(runtime)?, part(settle)?],
            allocations: each(&allocations, ALLOCATED.map(Allocated::word))?,
            ends: ends(maker)?,
        })
    }

    /// Counts a create that went as one of [`CREATED`] says.
    pub(crate) fn created(&self, is_for_pool: bool, result: &str, took: Option<Duration>) {
        let number = CREATED.iter().position(|it| *it == result);
        let counters = self.creates.get(usize::from(is_for_pool));
        if let (Some(number), Some(counters)) = (number, counters)
            && let Some(counter) = counters.get(number)
        {
            counter.inc();
        }
        if let Some(took) = took {
            self.create_seconds.observe(took.as_secs_f64());
        }
    }

    /// Counts how long a part of a create took.
    pub(crate) fn took(&self, phase: Part, took: Duration) {
        if let Some(part) = self.parts.get(phase as usize) {
            part.observe(took.as_secs_f64());
        }
    }

    /// Counts that a pool was asked for a sandbox.
    pub(crate) fn allocated(&self, how: Allocated) {
        if let Some(counter) = self.allocations.get(how as usize) {
            counter.inc();
        }
    }

    /// Counts an end.
    pub(crate) fn ended(&self, end: &End) {
        let kinds = self.ends.get(end.cause as usize);
        let counter = kinds.and_then(|kinds| kinds.get(usize::from(end.kind == EndKind::Failure)));
        if let Some(counter) = counter {
            counter.inc();
        }
    }
}

fn ends(maker: &mut Maker) -> Result<Vec<[IntCounter; 2]>> {
    let ends = maker.counters(
        "barchan_sandbox_ends_total",
        "Sandboxes that ended or were removed before they ended, by cause (see \
         `docs/reference/lifecycle.md`) and by whether that is a success.",
        &["cause", "result"],
    )?;
    let one = |cause: &Cause| {
        let of = |kind| ends.get_metric_with_label_values(&[cause.as_str(), kind]);
        Ok([of("success")?, of("failure")?])
    };
    Cause::ALL.iter().map(one).collect()
}
