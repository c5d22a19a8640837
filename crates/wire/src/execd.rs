//! Pure. The API of the in-sandbox daemon: commands, sessions, code, their events, files, metrics,
//! errors.
//!
//! Names and shapes are those of OpenSandbox 1.1.1: every field is spelled as its clients spell it.

pub mod code;
pub mod command;
pub mod error;
pub mod event;
pub mod exec;
pub mod file;
pub mod fs;
pub mod isolated;
pub mod metrics;
pub mod moment;
pub mod pty;
pub mod session;
pub mod transfer;
pub mod watch;

/// The port that always means the in-sandbox daemon itself.
pub const PORT: u16 = 44772;
