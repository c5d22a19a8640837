//! The lifecycle server: api, lifecycle, store.
//!
//! `api` parses and answers, and below it nobody sees HTTP; `lifecycle` decides; `store` keeps.
//! Never: system calls, words of an engine.

mod activity;
mod api;
pub mod app;
pub mod config;
pub mod lifecycle;
pub mod store;

pub use app::{App, Reloader, Source, StartError};
