//! The program that guards what sandboxes send out: what it is told, and how.
//!
//! Never: a decision about a connection. That is the program's; here is what operators and callers
//! set, and what is kept of it.

mod events;
mod program;
mod range;
mod resolvers;
mod roots;
mod tally;
mod words;

use std::sync::Arc;

use barchan_wire::egress::{Limits, Settings};

pub use program::ProgramError;
pub(crate) use program::{Program, Question, Said};
pub(crate) use range::Range;
pub(crate) use resolvers::{RESOLVERS_MAX, parse as resolver};
pub(crate) use roots::{certificates, roots};
pub(crate) use tally::Tally;
pub(crate) use words::{refused, rest_of, wanted};

/// What the operator sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Resolvers as `address` or `address:port`; those of the host where there are none.
    pub resolvers: Vec<String>,
    /// Targets that no sandbox reaches.
    pub deny_always: Vec<String>,
    /// Targets that every sandbox reaches.
    pub allow_always: Vec<String>,
    /// How long a connection waits for somebody's word, in seconds.
    pub ask_s: u32,
    /// What each sandbox may use.
    pub limits: Limits,
    /// Certificates by which servers are believed, as PEM.
    pub roots: Arc<str>,
}

impl Terms {
    /// The same in the words of the program.
    pub(crate) async fn settings(&self) -> Settings {
        let resolvers = match self.resolvers.is_empty() {
            true => resolvers::of_host().await,
            false => self
                .resolvers
                .iter()
                .filter_map(|it| resolver(it))
                .collect(),
        };
        Settings {
            resolvers,
            deny_always: self.deny_always.clone(),
            allow_always: self.allow_always.clone(),
            ask_s: self.ask_s,
            roots: self.roots.to_string(),
        }
    }
}
