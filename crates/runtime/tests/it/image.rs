//! The image store and builds, with a builder that needs nothing of ours.

mod builds;
mod host;
mod hostile;
mod overlay_builder;
mod packages;
mod store;
mod world;
