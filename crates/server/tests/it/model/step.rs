//! What happens to sandboxes, drawn at random.

use std::time::Duration;

use barchan_testkit::seed::Seed;
use serde_json::{Value, json};

use super::oracle::Oracle;
use crate::world::{Call, World, request};

/// One thing that happens. Sandboxes are named by their place among those that were ever made.
#[derive(Debug)]
pub(super) enum Step {
    /// A caller asks for something, and is answered.
    Asked(Verb),
    /// The server is killed so long after a caller asked for something.
    Cut(Verb, Duration),
    Advance(Duration),
    /// Somebody sets the calendar so many seconds on or back.
    SetCalendar(i64),
    /// An entrypoint exits.
    Exit(u64, i32),
    /// Somebody takes a sandbox away behind the server, who finds out at its next look.
    Vanish(u64),
    /// Something in a sandbox is at work from now on, or nothing is.
    Busy(u64, bool),
    Restart {
        in_order: bool,
    },
}

/// What a caller asks for.
#[derive(Debug, Clone)]
pub(super) enum Verb {
    Create(Wish),
    Delete(u64),
    Pause(u64),
    /// To disk.
    Park(u64),
    Resume(u64),
    /// To end so many seconds from now.
    Renew(u64, u64),
    Label(u64, &'static str, Option<&'static str>),
    /// A request to the daemon of a sandbox.
    Use(u64),
}

/// What a sandbox is to be like.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) timeout_s: Option<u64>,
    pub(super) idle_s: Option<u64>,
    pub(super) renew_s: Option<u64>,
    pub(super) label: Option<&'static str>,
}

/// One of these, drawn at random.
fn one<T: Copy>(seed: &mut Seed, of: &[T]) -> T {
    let place = seed.number() % of.len() as u64;
    of[usize::try_from(place).unwrap()]
}

impl Step {
    /// Any step, when so many sandboxes were made so far, and can be paused to disk or not.
    pub(super) fn any(seed: &mut Seed, known: u64, parks: bool) -> Self {
        let which = seed.number() % known.max(1);
        match seed.number() % 24 {
            0 | 1 => {
                let spans = [0, 1, 9, 11, 30, 61, 120, 301, 700, 3700];
                Self::Advance(Duration::from_secs(one(seed, &spans)))
            }
            2 if seed.number().is_multiple_of(2) => {
                Self::SetCalendar(one(seed, &[-86_400, -3600, -61, 61, 3600, 86_400]))
            }
            2 => Self::Exit(which, one(seed, &[0, 1, 137])),
            3 => Self::Vanish(which),
            4 => Self::Busy(which, one(seed, &[true, false])),
            5 => Self::Restart {
                in_order: one(seed, &[true, false, false]),
            },
            6..=8 => {
                let micros = seed.number() % 3000;
                Self::Cut(Verb::any(seed, which, parks), Duration::from_micros(micros))
            }
            _ => Self::Asked(Verb::any(seed, which, parks)),
        }
    }
}

impl Verb {
    fn any(seed: &mut Seed, which: u64, parks: bool) -> Self {
        match seed.number() % 16 {
            0..=3 => Self::Create(Wish {
                timeout_s: one(seed, &[None, Some(60), Some(61), Some(600), Some(7200)]),
                idle_s: one(seed, &[None, None, Some(60), Some(300)]),
                renew_s: one(seed, &[None, None, Some(300), Some(600)]),
                label: one(seed, &[None, Some("a"), Some("b")]),
            }),
            4 | 5 => Self::Delete(which),
            6 if parks => Self::Park(which),
            6 | 7 => Self::Pause(which),
            8 | 9 => Self::Resume(which),
            10 | 11 => Self::Renew(which, one(seed, &[0, 1, 30, 61, 600, 100_000])),
            12 | 13 => {
                let value = one(seed, &[None, Some("x"), Some("y")]);
                Self::Label(which, one(seed, &["team", "stage"]), value)
            }
            _ => Self::Use(which),
        }
    }

    /// The request for it.
    pub(super) fn call(&self, world: &World, oracle: &Oracle, entrypoint: &[&str]) -> Call {
        let at = |which: &u64, rest: &str| format!("/v1/sandboxes/{}{rest}", oracle.name(*which));
        match self {
            Self::Create(wish) => world
                .call("POST", "/v1/sandboxes")
                .json(&wish.body(entrypoint)),
            Self::Delete(which) => world.call("DELETE", &at(which, "")),
            Self::Pause(which) => world.call("POST", &at(which, "/pause")),
            Self::Park(which) => world.call("POST", &at(which, "/pause?to=disk")),
            Self::Resume(which) => world.call("POST", &at(which, "/resume")),
            Self::Renew(which, seconds) => {
                let body = json!({"expiresAt": oracle.time_in(*seconds)});
                world
                    .call("POST", &at(which, "/renew-expiration"))
                    .json(&body)
            }
            Self::Label(which, key, value) => {
                let call = world.call("PATCH", &at(which, "/metadata"));
                call.json(&json!({*key: value}))
            }
            Self::Use(which) => world.call("GET", &at(which, "/proxy/44772/ping")),
        }
    }
}

impl Wish {
    fn body(&self, entrypoint: &[&str]) -> Value {
        request(&json!({
            "timeout": self.timeout_s,
            "entrypoint": entrypoint,
            "resourceLimits": {"memory": "64Mi", "disk": "32Mi"},
            "metadata": self.label.map_or_else(|| json!({}), |label| json!({"team": label})),
            "extensions": self.extensions(),
        }))
    }

    fn extensions(&self) -> Value {
        let mut extensions = json!({});
        for (name, seconds) in [
            ("barchan.idle.timeout.seconds", self.idle_s),
            ("access.renew.extend.seconds", self.renew_s),
        ] {
            if let Some(seconds) = seconds {
                extensions[name] = json!(seconds.to_string());
            }
        }
        extensions
    }
}
