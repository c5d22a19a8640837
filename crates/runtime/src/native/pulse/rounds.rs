//! Pure. Whom to ask at which tick, and who has been silent for too long.

use std::collections::{HashMap, HashSet};

use barchan_wire::id::SandboxId;

/// Ticks from one question to the next.
const ROUND_TICKS: u32 = 8;
/// Ticks that an answer may take. With a round that has just begun, the time to end a sandbox and
/// to tell of it, these make less than 5 s.
const PATIENCE_TICKS: u32 = 10;

/// What is due for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask whether it answers.
    Question,
    /// End it.
    Verdict,
}

#[derive(Debug, Clone, Copy)]
enum Standing {
    /// Its next question is so many ticks away.
    Resting(u32),
    /// It was asked so many ticks ago.
    Asked(u32),
    /// Its end was asked for.
    Condemned,
}

/// Where every sandbox stands in its round.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    standing: HashMap<SandboxId, Standing>,
    /// Who comes goes to the next place of the round, so that questions spread over it.
    place: u32,
}

impl Rounds {
    /// Another tick has passed, and these run. Who does not is forgotten, and begins anew if it
    /// ever runs again.
    pub(super) fn tick(&mut self, running: &[SandboxId]) -> Vec<(SandboxId, Due)> {
        let present: HashSet<&SandboxId> = running.iter().collect();
        self.standing.retain(|id, _| present.contains(id));
        let mut all_due = Vec::new();
        for id in running {
            let Some(standing) = self.standing.get_mut(id) else {
                self.place = (self.place + 1) % ROUND_TICKS;
                let first = Standing::Resting(self.place);
                self.standing.insert(id.clone(), first);
                continue;
            };
            let (next, due) = standing.after_a_tick();
            *standing = next;
            all_due.extend(due.map(|due| (id.clone(), due)));
        }
        all_due
    }

    /// It answered, or it could not be helped: it is asked again when its next round begins.
    pub(super) fn spare(&mut self, id: &SandboxId) {
        if let Some(standing) = self.standing.get_mut(id) {
            *standing = match *standing {
                Standing::Asked(ticks) => Standing::Resting(ROUND_TICKS.saturating_sub(ticks + 1)),
                Standing::Condemned => Standing::Resting(ROUND_TICKS),
                resting @ Standing::Resting(_) => resting,
            };
        }
    }

    /// Whether it was there at the last tick.
    pub(super) fn knows(&self, id: &SandboxId) -> bool {
        self.standing.contains_key(id)
    }
}

impl Standing {
    fn after_a_tick(self) -> (Self, Option<Due>) {
        match self {
            Self::Resting(0) => (Self::Asked(0), Some(Due::Question)),
            Self::Resting(ticks) => (Self::Resting(ticks - 1), None),
            Self::Asked(ticks) if ticks + 1 >= PATIENCE_TICKS => {
                (Self::Condemned, Some(Due::Verdict))
            }
            Self::Asked(ticks) => (Self::Asked(ticks + 1), None),
            Self::Condemned => (Self::Condemned, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u8) -> Vec<SandboxId> {
        (0..count)
            .map(|number| {
                let text = format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e{number:02x}");
                text.parse().unwrap()
            })
            .collect()
    }

    /// At which of so many ticks what is due, for one sandbox that answers so many ticks after a
    /// question, or never.
    fn history(ticks: u32, answers_after: Option<u32>, runs: impl Fn(u32) -> bool) -> String {
        let (mut rounds, ids) = (Rounds::default(), ids(1));
        let (mut told, mut answer_at) = (Vec::new(), None);
        for tick in 0..ticks {
            if answer_at == Some(tick) {
                rounds.spare(&ids[0]);
            }
            let running: &[SandboxId] = if runs(tick) { &ids } else { &[] };
            for (_, due) in rounds.tick(running) {
                told.push(format!("{tick}{due:?}").replace(char::is_lowercase, ""));
                answer_at = answers_after.map(|after| tick + after);
            }
        }
        told.join(" ")
    }

    #[test]
    fn who_answers_is_asked_once_a_round_and_who_does_not_is_condemned_once() {
        for (answers_after, expected) in [
            (Some(1), "2Q 10Q 18Q 26Q 34Q"),
            (Some(8), "2Q 10Q 18Q 26Q 34Q"),
            (Some(10), "2Q 12Q 22Q 32Q"),
            (Some(11), "2Q 12V 31Q"),
            (None, "2Q 12V"),
        ] {
            let told = history(40, answers_after, |_| true);
            assert_eq!(told, expected, "{answers_after:?}");
        }
    }

    #[test]
    fn a_time_out_counts_from_the_beginning_again() {
        assert_eq!(history(40, None, |tick| tick != 11), "2Q 15Q 25V");
        assert_eq!(history(9, None, |tick| tick > 3), "6Q");
        assert_eq!(history(40, None, |tick| tick < 3), "2Q");
    }

    #[test]
    fn questions_spread_over_a_round() {
        let (mut rounds, ids) = (Rounds::default(), ids(80));
        rounds.tick(&ids);
        for _ in 0..ROUND_TICKS {
            assert_eq!(rounds.tick(&ids).len(), 10);
        }
    }
}
