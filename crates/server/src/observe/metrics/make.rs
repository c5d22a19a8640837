//! Declares figures, and remembers what was declared, for the reference.

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, Result,
};

/// Bounds of times, in seconds: fine where a sandbox is made, coarse where something is wrong.
pub(super) const SHORT_S: [f64; 15] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
];

/// One figure as it was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) help: &'static str,
    pub(super) labels: Vec<&'static str>,
}

/// Makes figures.
#[derive(Default)]
pub(super) struct Maker {
    registry: Registry,
    described: Vec<Described>,
}

impl Maker {
    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str) -> Result<IntGauge> {
        self.note(name, "gauge", help, &[]);
        self.own(IntGauge::new(name, help)?)
    }

    pub(super) fn gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&'static str],
    ) -> Result<IntGaugeVec> {
        self.note(name, "gauge", help, labels);
        self.own(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&'static str],
    ) -> Result<IntCounterVec> {
        self.note(name, "counter", help, labels);
        self.own(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        bounds: &[f64],
    ) -> Result<Histogram> {
        self.note(name, "histogram", help, &[]);
        let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        self.own(Histogram::with_opts(options)?)
    }

    pub(super) fn histograms(
        &mut self,
        name: &'static str,
        help: &'static str,
        bounds: &[f64],
        labels: &[&'static str],
    ) -> Result<HistogramVec> {
        self.note(name, "histogram", help, labels);
        let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        self.own(HistogramVec::new(options, labels)?)
    }

    /// Where they are all gathered, and what they are.
    pub(super) fn finish(self) -> (Registry, Vec<Described>) {
        (self.registry, self.described)
    }

    fn own<C: Collector + Clone + 'static>(&mut self, figure: C) -> Result<C> {
        self.registry.register(Box::new(figure.clone()))?;
        Ok(figure)
    }

    fn note(
        &mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        labels: &[&'static str],
    ) {
        self.described.push(Described {
            name,
            kind,
            help,
            labels: labels.to_vec(),
        });
    }
}

/// A counter of each of these labels' values.
pub(super) fn each<const N: usize>(
    counters: &IntCounterVec,
    values: [&str; N],
) -> Result<[IntCounter; N]> {
    let made: Result<Vec<IntCounter>> = values
        .iter()
        .map(|value| counters.get_metric_with_label_values(&[value]))
        .collect();
    made?
        .try_into()
        .map_err(|_| prometheus::Error::Msg("as many counters as values".to_owned()))
}
