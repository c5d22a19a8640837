//! Pure. One breach of a rule, with the way out of it.

use std::fmt;

/// A breach: where, what, and what to do instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The file, from the root of the repository.
    pub(crate) path: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do instead.
    pub(crate) instead: &'static str,
}

impl Fault {
    /// A breach at a line.
    pub(crate) fn new(path: &str, line: usize, what: String, instead: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what,
            instead,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}: {}. Instead: {}",
            self.path, self.line, self.what, self.instead
        )
    }
}

/// Fails the test with every breach, one a line.
pub(crate) fn none(faults: &[Fault]) {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(
        faults.is_empty(),
        "{} breach(es):\n{}",
        faults.len(),
        lines.join("\n")
    );
}
