//! Sandboxes on this host, made by the real launcher.

mod escape;
mod gpus;
mod hooks;
mod isolated;
mod layers;
mod orphans;
mod rootless;
pub(crate) mod snapshots;
mod start;
mod traces;
mod volumes;
mod wedge;
pub(crate) mod world;
