//! The crate from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod child;
mod host_paths;
mod launcher;
mod redirect;
