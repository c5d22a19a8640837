//! Typed calls to the HTTP APIs of a server and, through it, of its sandboxes.
//!
//! Everything is bounded: connecting, waiting for an answer, silence in a stream, the size of
//! answers and of single events. Never: server code, printing, a file held in memory.

mod access;
pub mod command;
mod connect;
pub mod error;
pub mod exec;
pub mod files;
pub mod frames;
mod http;
pub mod lifecycle;
pub mod limits;
pub mod sandbox;
mod stream;
pub mod target;
pub mod terminal;

pub use command::{End, Output, Running};
pub use error::{ApiError, ClientError};
pub use exec::{Exec, Told};
pub use files::{Download, Progress};
pub use lifecycle::{Client, DiffEnd, DiffForm, Filter, ImageDownload, SnapshotFilter};
pub use limits::Limits;
pub use sandbox::Sandbox;
pub use target::Target;
pub use terminal::{Said, Terminal};
