//! Turns a process into a sandboxed one: namespaces, mounts, ids, seccomp, cgroups, exec.
//!
//! Used by the resident launcher (`barchan-jail`, this crate's program), by the native runtime, which
//! speaks [`proto`] with it, and by the in-sandbox daemon, which starts everything through [`child`].
//! Never: connections, threads, tokio. The only crate with unsafe code, all of it in [`sys`].

pub mod child;
pub mod guest;
pub mod log_ring;
pub mod privileges;
pub mod seccomp;
pub mod sys;
