//! The words on Barchan's wires: ids, requests, answers, events, errors and the limits a caller
//! can see.
//!
//! Never: I/O, async, a clock. What another process reads is a promise; what a program stores or
//! thinks with lives in that program's own crate.

pub mod egress;
pub mod execd;
pub mod header;
pub mod id;
pub mod lifecycle;
pub mod limits;
pub mod local;
pub mod secret;
