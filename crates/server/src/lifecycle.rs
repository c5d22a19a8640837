//! What becomes of sandboxes: callers' verbs, the runtime's reports and the clock meet here.

mod error;
mod expiry;
mod feed;
mod graves;
mod guard;
mod layer;
mod list;
mod networks;
mod pool;
mod quota;
mod reconcile;
mod registry;
mod retention;
mod scope;
mod service;
mod snapshot;
pub mod state;

pub use error::{LifecycleError, Verb};
pub use feed::{Change, Watch};
pub use guard::GuardError;
pub use layer::LayerError;
pub use list::Filter;
pub(crate) use list::word;
pub(crate) use networks::Membership;
pub use pool::KeptPool;
pub use retention::Retention;
pub use scope::Scope;
pub(crate) use service::Call;
pub use service::{Comparing, Draft, Lifecycle, Parts, Range, Rules, To};
pub use snapshot::{SnapshotError, SnapshotFilter, SnapshotRecord, SnapshotState};
