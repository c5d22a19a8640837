//! Sandboxes on this host, made by the real launcher.

mod escape;
mod orphans;
mod rootless;
mod start;
mod traces;
pub(crate) mod world;
