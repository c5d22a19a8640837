//! Sandboxes on this host, made by the real launcher.

mod start;
pub(crate) mod world;
