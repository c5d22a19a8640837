//! The lifecycle server: api, lifecycle, store.
//!
//! `api` parses and answers, and below it nobody sees HTTP; `lifecycle` decides; `store` keeps.
//! Never: system calls, words of an engine.

pub mod access;
mod activity;
mod api;
pub mod app;
pub mod approvals;
pub mod audit;
pub mod config;
pub mod egress;
pub mod lifecycle;
pub mod observe;
mod random;
pub mod store;
pub mod vault;

pub use api::routes;
pub use app::{App, Reloader, Source, StartError};
