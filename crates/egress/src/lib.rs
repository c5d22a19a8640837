//! What a sandbox may reach: the part of outbound policy that only thinks.
//!
//! A caller's rules and the operator's become a [`Table`](table::Table). A question to the DNS is
//! judged by it ([`question`]), and its answer leaves [`Pins`](pins::Pins): which names stand for
//! which addresses. Of a connection the first bytes tell what it says about its other end
//! ([`hello`]); with the pins and the table that makes a [`Verdict`](verdict::Verdict).
//!
//! [`Vault`](vault::Vault) is the credentials that its requests get on their way.
//!
//! Never: sockets, a clock, a secret in words. Whoever uses this brings bytes and the time: that is
//! the program of this crate, whose table of contents is `main.rs`.

#![forbid(unsafe_code)]

pub mod address;
pub mod hello;
pub mod host;
#[cfg(test)]
mod naive;
pub mod name;
pub mod net;
pub mod peers;
pub mod pins;
pub mod policy;
pub mod question;
pub mod rules;
mod spans;
pub mod table;
pub mod target;
pub mod vault;
pub mod verdict;
