//! Comparisons that come to no end, and why. Whoever is ended says nothing any more, and the one
//! who listens may be so slow that there is no room for a word: so the reason is kept until it is
//! asked for.

use std::collections::VecDeque;

use super::{Comparing, Launcher, Snapshots, Task, Told};
use crate::proto::{Failure, FailureKind};

/// Most reasons that are kept, far more than there are comparisons at once.
const KEPT_MAX: usize = 256;

/// Why comparisons broke off, by their tickets, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Broken(VecDeque<(String, String)>);

impl Broken {
    /// The first reason counts.
    fn add(&mut self, ticket: &str, why: &str) {
        if self.why(ticket).is_some() {
            return;
        }
        if self.0.len() >= KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back((ticket.to_owned(), why.to_owned()));
    }

    fn why(&self, ticket: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == ticket);
        found.map(|(_, why)| why.as_str())
    }
}

/// What nobody ended, and nobody heard a reason of.
const DIED: &str = "the process that compares layers ended before it was done: it needed more than \
                    512 MiB of memory, or was killed; compare layers that are nearer to each other";

impl Snapshots {
    /// Ends comparisons for a reason.
    pub(in super::super) fn end_comparing(
        &mut self,
        why: &str,
        is_over: impl Fn(&Comparing) -> bool,
    ) {
        for worker in self.at_work.values() {
            if let Task::Compare(comparing) = &worker.task
                && is_over(comparing)
            {
                self.broken.add(&comparing.ticket, why);
                worker.process.kill();
            }
        }
    }
}

impl Launcher {
    /// A comparison is over; without a last word it broke off.
    pub(super) fn comparing_ended(&mut self, comparing: Comparing, last: Option<&Told>) {
        if last.is_none() {
            self.snapshots.broken.add(&comparing.ticket, DIED);
        }
        // What nobody else has of its layers goes.
        drop(comparing.layers);
        self.sweep_layers();
    }

    /// Why a comparison broke off.
    pub(in super::super) fn why_broken(&self, ticket: &str) -> Failure {
        let is_at_work = |task: &Task| match task {
            Task::Compare(comparing) => comparing.ticket == ticket,
            _ => false,
        };
        let mut tasks = self.snapshots.at_work.values().map(|worker| &worker.task);
        match self.snapshots.broken.why(ticket) {
            Some(why) => Failure::new(FailureKind::Layer, why),
            // Its connection ends before its process is taken away.
            None if tasks.any(is_at_work) => Failure::new(FailureKind::Layer, DIED),
            None => Failure::new(FailureKind::NotFound, "there was no such comparison"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts_and_the_oldest_are_forgotten() {
        let mut broken = Broken::default();
        for number in 0..=KEPT_MAX {
            broken.add(&number.to_string(), "one");
            broken.add(&number.to_string(), "two");
        }
        assert_eq!(broken.why("0"), None);
        assert_eq!(broken.why("1"), Some("one"));
        assert_eq!(broken.0.len(), KEPT_MAX);
    }
}
