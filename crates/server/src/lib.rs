//! The lifecycle server: api, lifecycle, store.
//!
//! `api` parses and answers, and below it nobody sees HTTP; `lifecycle` decides; `store` keeps.
//! Never: system calls, words of an engine.

pub mod config;
pub mod lifecycle;
pub mod store;
