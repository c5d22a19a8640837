//! One attack, how a sandbox refuses it, and where it works.

use serde::Deserialize;

/// Where an attack is shown to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// On the host, as whoever runs the test.
    Host,
    /// On the host, as root.
    Root,
    /// In namespaces of its own, as their root, with every capability there and no filter or mask.
    Namespaces,
    /// In namespaces that belong to the host's root.
    RootNamespaces,
}
pub(crate) use Control::{Host, Namespaces, Root, RootNamespaces};

impl Control {
    /// Whether whoever runs the test may run it.
    pub(crate) fn is_possible(self) -> bool {
        matches!(self, Host | Namespaces) || is_root()
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The function's name and, after a colon, what it is called with.
    pub(crate) attack: &'static str,
    /// Answers that mean refused, apart by spaces: errors of the kernel, or `held`.
    refused: &'static str,
    pub(crate) control: Control,
    /// Answers of the control which say that this host has nothing to attack.
    lacking: &'static str,
}

/// What a kernel answers that lacks a file, a call or a kind of socket.
const NOT_THERE: &str = "absent ENOENT ENOSYS EAFNOSUPPORT EOPNOTSUPP ENODEV";

pub(crate) const fn row(attack: &'static str, refused: &'static str, control: Control) -> Row {
    Row {
        attack,
        refused,
        control,
        lacking: "",
    }
}

impl Row {
    /// Some hosts have nothing to attack here.
    pub(crate) const fn where_present(self) -> Self {
        self.unless(NOT_THERE)
    }

    /// With one of these answers of the control, the row does not count on this host.
    pub(crate) const fn unless(self, lacking: &'static str) -> Self {
        Self { lacking, ..self }
    }
}

/// How an attack went.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) attack: String,
    outcome: Kind,
    pub(crate) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Worked,
    Refused,
    Absent,
    Broken,
}

/// What the two runs of an attack say together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Refused inside, worked outside.
    Counts,
    /// Refused inside; nothing shows that it would have worked.
    DoesNotCount(String),
    /// It worked inside, failed for another reason than the defence, or failed outside.
    Fails(String),
}

impl Outcome {
    /// Whether it went in one of these ways: errors of the kernel, `held` or `absent`.
    fn is_one_of(&self, answers: &str) -> bool {
        let answer = match self.outcome {
            Kind::Refused => self.detail.split(':').next().unwrap_or_default(),
            Kind::Absent => "absent",
            Kind::Worked | Kind::Broken => return false,
        };
        answers.split(' ').any(|wanted| wanted == answer)
    }
}

impl Row {
    pub(crate) fn judge(&self, inside: &Outcome, control: Option<&Outcome>) -> Verdict {
        if !inside.is_one_of(self.refused) && !inside.is_one_of(self.lacking) {
            return Verdict::Fails(format!("in the sandbox: {inside:?}"));
        }
        match control {
            Some(control) if control.outcome == Kind::Worked => {
                if inside.is_one_of(self.refused) {
                    Verdict::Counts
                } else {
                    Verdict::Fails(format!("absent in the sandbox only: {inside:?}"))
                }
            }
            Some(control) if control.is_one_of(self.lacking) => {
                Verdict::DoesNotCount(format!("not to be had on this host ({})", control.detail))
            }
            Some(control) => Verdict::Fails(format!("where the defence is off: {control:?}")),
            None => Verdict::DoesNotCount(format!("{:?} needs root", self.control)),
        }
    }
}

#[test]
fn only_a_refusal_inside_and_a_success_outside_count() {
    let outcome = |outcome, detail: &str| Outcome {
        attack: String::new(),
        outcome,
        detail: detail.to_owned(),
    };
    let strict = row("any", "EPERM held", Host);
    let lax = strict.where_present();
    let (worked, refused) = (outcome(Kind::Worked, "x"), outcome(Kind::Refused, "EPERM"));
    let (absent, broken) = (outcome(Kind::Absent, "x"), outcome(Kind::Broken, "x"));
    let (other, held) = (
        outcome(Kind::Refused, "EIO"),
        outcome(Kind::Refused, "held: x"),
    );
    for (row, inside, control, wanted) in [
        (strict, &refused, Some(&worked), "counts"),
        (strict, &held, Some(&worked), "counts"),
        (strict, &refused, Some(&refused), "fails"),
        (strict, &refused, Some(&absent), "fails"),
        (strict, &refused, None, "does not count"),
        (strict, &worked, Some(&worked), "fails"),
        (strict, &broken, Some(&worked), "fails"),
        (strict, &other, Some(&worked), "fails"),
        (strict, &absent, Some(&worked), "fails"),
        (lax, &refused, Some(&absent), "does not count"),
        (lax, &absent, Some(&absent), "does not count"),
        (lax, &absent, Some(&worked), "fails"),
        (lax, &worked, Some(&absent), "fails"),
        (lax, &refused, Some(&other), "fails"),
    ] {
        let verdict = match row.judge(inside, control) {
            Verdict::Counts => "counts",
            Verdict::DoesNotCount(_) => "does not count",
            Verdict::Fails(_) => "fails",
        };
        assert_eq!(verdict, wanted, "{inside:?} {control:?}");
    }
}
