//! Pure. The lifecycle API: what a caller asks for, what it is told, and how it is refused.
//!
//! Requests are read leniently, as the clients of this API were written against a lenient reader:
//! numbers may come as text, and a field's name in camel case or snake case.

pub mod access;
pub mod approval;
pub mod changes;
pub mod code;
pub mod create;
pub mod endpoint;
pub mod error;
pub mod expiration;
pub mod hooks;
pub mod lax;
pub mod layers;
pub mod metadata;
pub mod metrics;
pub mod pool;
pub mod reload;
pub mod report;
pub mod resources;
pub mod sandbox;
pub mod schedule;
pub mod snapshot;
pub mod time;
pub mod volume;
mod word;

pub use access::{
    CreateKey, CreateTenant, KeyList, KeyReport, NewKey, Quota, Rate, Role, RotateKey, TenantList,
    TenantReport, TenantTerms, Usage,
};
pub use create::{CreateSandbox, Image, ImageAuth, NetworkPolicy, NetworkRule, Platform};
pub use endpoint::Endpoint;
pub use error::{ErrorBody, Fault, Faults, ValidationBody};
pub use expiration::Expiration;
pub use hooks::Hooks;
pub use layers::{Forked, Layer, LayerList};
pub use metrics::CreateEvent;
pub use pool::{Allocation, Capacity, CreatePool, Pool, PoolList, PoolStatus};
pub use reload::ReloadReport;
pub use report::{ChangeReport, EndReport, HappeningReport, Report};
pub use sandbox::{CreatedSandbox, Pagination, Sandbox, SandboxList, State, Status};
pub use schedule::Schedule;
pub use snapshot::{CreateSnapshot, Snapshot, SnapshotList, SnapshotState, SnapshotStatus};
pub use time::Time;
pub use volume::{NamedVolume, NamedVolumes, Volume};
