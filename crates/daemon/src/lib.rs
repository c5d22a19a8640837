//! What Barchan's long-running programs do alike: tell the time, own their tasks, stop in order,
//! take requests' bodies, join connections, write logs, make private folders.
//!
//! Never: sandboxes, routes, anything heavy at start; the in-sandbox daemon uses this crate too.

pub mod clock;
pub mod folder;
pub mod payload;
pub mod shutdown;
pub mod splice;
pub mod tasks;
#[cfg(feature = "logs")]
pub mod telemetry;
