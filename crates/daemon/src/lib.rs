//! What Barchan's long-running programs do alike: tell the time, own their tasks, stop in order,
//! write logs.
//!
//! Never: sandboxes, HTTP, anything heavy at start; the in-sandbox daemon uses this crate too.

pub mod clock;
pub mod shutdown;
pub mod tasks;
#[cfg(feature = "logs")]
pub mod telemetry;
