//! Pure. The credentials of a sandbox: which requests get which, and what that makes of a request.
//!
//! A caller's [`wire::Vault`](barchan_wire::egress::vault::Vault) is read once ([`Vault::read`]),
//! and refused whole if any part of it could send a secret further than was meant. Then a request
//! is looked up ([`Vault::find`]), and its [`Binding`] rewrites its head ([`Binding::rewrite`]),
//! its body ([`Binding::rewrite_body`]) and, where asked, what is answered
//! ([`Binding::scrubber`]).
//!
//! At most one binding fits a request: two that both could are refused.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use barchan_wire::egress::vault::Scheme;
use http::{HeaderName, HeaderValue};

use crate::name::Name;

mod error;
mod escape;
mod glob;
mod hosts;
mod overlap;
mod read;
mod replace;
mod rewrite;
mod scrub;

pub use error::VaultError;
pub use hosts::port;
pub use rewrite::{RewriteError, is_encoded};
pub use scrub::Scrubber;

use glob::Glob;
use hosts::Hosts;
use replace::{Bodies, Replacer};

/// All bindings of a sandbox.
#[derive(Debug, Default)]
pub struct Vault {
    bindings: Vec<Rc<Binding>>,
}

/// Which requests get which credentials.
pub struct Binding {
    name: String,
    schemes: Vec<Scheme>,
    hosts: Vec<Hosts>,
    methods: Vec<String>,
    paths: Vec<Glob>,
    changes: Changes,
}

/// What becomes of a request.
struct Changes {
    /// What replaces the sandbox's own headers of these names.
    headers: Vec<(HeaderName, HeaderValue)>,
    in_headers: Option<Replacer>,
    in_path: Option<Replacer>,
    in_query: Option<Replacer>,
    in_body: Option<Bodies>,
    /// What is taken out of answers.
    scrub: Option<Arc<Replacer>>,
}

impl Vault {
    /// The binding that a request gets its credentials from. A path is without its query.
    #[must_use]
    pub fn find(
        &self,
        (scheme, host): (Scheme, &Name),
        method: &str,
        path: &str,
    ) -> Option<Rc<Binding>> {
        let is_plain = glob::is_plain(path);
        let fits = |binding: &&Rc<Binding>| {
            binding.is_about(scheme, host)
                && binding.methods.iter().any(|it| it == method)
                && binding
                    .paths
                    .iter()
                    .any(|glob| glob.is_any_path() || is_plain && glob.fits(path))
        };
        self.bindings.iter().find(fits).cloned()
    }

    /// Whether requests to a host may get credentials, so that they have to be looked at.
    #[must_use]
    pub fn is_bound(&self, scheme: Scheme, host: &Name) -> bool {
        self.bindings.iter().any(|it| it.is_about(scheme, host))
    }
}

impl Binding {
    /// Whether the body of a request has to be read before it can go on.
    #[must_use]
    pub const fn rewrites_bodies(&self) -> bool {
        self.changes.in_body.is_some()
    }

    /// What takes the values out of an answer, where that is asked for.
    #[must_use]
    pub fn scrubber(&self) -> Option<Scrubber> {
        let scrub = self.changes.scrub.as_ref();
        scrub.map(|it| Scrubber::new(Arc::clone(it)))
    }

    fn is_about(&self, scheme: Scheme, host: &Name) -> bool {
        self.schemes.contains(&scheme) && self.hosts.iter().any(|hosts| hosts.has(host))
    }
}

/// Its name alone: the rest holds values.
impl fmt::Debug for Binding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Binding")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
