//! Pure. The API of the in-sandbox daemon: commands, their event stream, files, metrics, errors.
//!
//! Names and shapes are those of OpenSandbox 1.1.1: every field is spelled as its clients spell it.

pub mod command;
pub mod error;
pub mod event;
pub mod file;
pub mod metrics;
pub mod moment;

/// The port that always means the in-sandbox daemon itself.
pub const PORT: u16 = 44772;
