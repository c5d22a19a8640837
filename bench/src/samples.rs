//! Pure. Figures and what becomes of them.

use serde::Serialize;

/// Most messages of failures that are kept of one figure.
const REASONS_MAX: usize = 3;

/// What was measured of one thing.
#[derive(Debug, Clone)]
pub(crate) struct Samples {
    /// A short name for programs.
    pub(crate) id: &'static str,
    /// The name in the table.
    pub(crate) title: &'static str,
    /// `ms`, `MB/s`, `1/s`, `KiB`, `ratio`.
    pub(crate) unit: &'static str,
    values: Vec<f64>,
    failures: usize,
    reasons: Vec<String>,
    goals: Vec<Goal>,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Goal {
    pub(crate) statistic: Statistic,
    pub(crate) bound: Bound,
    pub(crate) value: f64,
}

/// Which of the values counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Statistic {
    P50,
    P99,
}

/// On which side it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost,
    AtLeast,
}

/// One figure as it is reported.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) count: usize,
    pub(crate) failures: usize,
    pub(crate) reasons: Vec<String>,
    pub(crate) min: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) goals: Vec<Goal>,
    /// Whether every goal is reached; `None` without goals.
    pub(crate) reached: Option<bool>,
}

impl Samples {
    /// Nothing measured yet.
    pub(crate) fn new(id: &'static str, title: &'static str, unit: &'static str) -> Self {
        Self {
            id,
            title,
            unit,
            values: Vec::new(),
            failures: 0,
            reasons: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// Sets a goal.
    pub(crate) fn goal(mut self, statistic: Statistic, bound: Bound, value: f64) -> Self {
        self.goals.push(Goal {
            statistic,
            bound,
            value,
        });
        self
    }

    /// Adds a value, or counts a failure and keeps the first few reasons.
    pub(crate) fn add(&mut self, outcome: Result<f64, String>) {
        match outcome {
            Ok(value) => self.values.push(value),
            Err(reason) => {
                self.failures += 1;
                if self.reasons.len() < REASONS_MAX && !self.reasons.contains(&reason) {
                    self.reasons.push(reason);
                }
            }
        }
    }

    /// Half of the values are below it.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.at(50)
    }

    /// The value that so many per cent are not above.
    fn at(&self, percent: usize) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    /// What is reported of it.
    pub(crate) fn figure(&self) -> Figure {
        let (p50, p99) = (self.at(50), self.at(99));
        let holds = |goal: &Goal| {
            let value = match goal.statistic {
                Statistic::P50 => p50,
                Statistic::P99 => p99,
            };
            value.is_some_and(|value| match goal.bound {
                Bound::AtMost => value <= goal.value,
                Bound::AtLeast => value >= goal.value,
            })
        };
        Figure {
            id: self.id,
            title: self.title,
            unit: self.unit,
            count: self.values.len(),
            failures: self.failures,
            reasons: self.reasons.clone(),
            min: self.values.iter().copied().min_by(f64::total_cmp),
            p50,
            p99,
            max: self.values.iter().copied().max_by(f64::total_cmp),
            reached: (!self.goals.is_empty()).then(|| self.goals.iter().all(holds)),
            goals: self.goals.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Samples {
        let mut samples = Samples::new("x", "x", "ms");
        values.iter().for_each(|value| samples.add(Ok(*value)));
        samples
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        for (values, p50, p99) in [
            (&[][..], None, None),
            (&[3.0], Some(3.0), Some(3.0)),
            (&[2.0, 1.0], Some(1.0), Some(2.0)),
            (&[5.0, 1.0, 3.0], Some(3.0), Some(5.0)),
        ] {
            let figure = of(values).figure();
            assert_eq!((figure.p50, figure.p99), (p50, p99), "{values:?}");
        }
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let figure = of(&hundred).figure();
        assert_eq!((figure.p50, figure.p99), (Some(50.0), Some(99.0)));
        assert_eq!((figure.min, figure.max), (Some(1.0), Some(100.0)));
    }

    #[test]
    fn failures_are_counted_and_their_reasons_kept_once() {
        let mut samples = of(&[1.0]);
        for reason in ["a", "a", "b", "c", "d"] {
            samples.add(Err(reason.to_owned()));
        }
        let figure = samples.figure();
        assert_eq!((figure.count, figure.failures), (1, 5));
        assert_eq!(figure.reasons, ["a", "b", "c"]);
    }

    #[test]
    fn goals_are_reached_together_or_not() {
        let samples = |most: f64, least: f64| {
            of(&[2.0, 4.0])
                .goal(Statistic::P50, Bound::AtLeast, least)
                .goal(Statistic::P99, Bound::AtMost, most)
                .figure()
                .reached
        };
        assert_eq!(samples(4.0, 2.0), Some(true));
        assert_eq!(samples(3.9, 2.0), Some(false));
        assert_eq!(samples(4.0, 2.1), Some(false));
        assert_eq!(of(&[1.0]).figure().reached, None);
        let nothing = of(&[]).goal(Statistic::P50, Bound::AtMost, 1.0);
        assert_eq!(nothing.figure().reached, Some(false));
    }
}
