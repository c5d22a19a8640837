//! The file tools of agents: one call for what otherwise takes a script and an interpreter in the
//! image. Nothing here knows HTTP.

pub(crate) mod delete;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod ls;
mod page;
mod pattern;
pub(crate) mod read;
pub(crate) mod refusal;
pub(crate) mod resolve;
mod tree;
pub(crate) mod turns;
pub(crate) mod write;
