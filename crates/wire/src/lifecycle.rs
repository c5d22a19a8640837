//! Pure. The lifecycle API: what a caller asks for, what it is told, and how it is refused.
//!
//! Requests are read leniently, as the clients of this API were written against a lenient reader:
//! numbers may come as text, and a field's name in camel case or snake case.

pub mod code;
pub mod create;
pub mod endpoint;
pub mod error;
pub mod expiration;
pub mod hooks;
pub mod lax;
pub mod metadata;
pub mod metrics;
pub mod resources;
pub mod sandbox;
pub mod time;

pub use create::{CreateSandbox, Image, ImageAuth, NetworkPolicy, NetworkRule, Platform};
pub use endpoint::Endpoint;
pub use error::{ErrorBody, Fault, Faults, ValidationBody};
pub use expiration::Expiration;
pub use metrics::CreateEvent;
pub use sandbox::{CreatedSandbox, Pagination, Sandbox, SandboxList, State, Status};
pub use time::Time;
