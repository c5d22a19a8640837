//! What becomes of sandboxes: callers' verbs, the runtime's reports and the clock meet here.

mod error;
mod expiry;
mod list;
mod reconcile;
mod registry;
mod service;
pub mod state;

pub use error::{LifecycleError, Verb};
pub use list::Filter;
pub use service::{Draft, Lifecycle, Parts, Rules};
