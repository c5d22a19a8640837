//! Turns a process into a sandboxed one: namespaces, mounts, ids, seccomp, cgroups, exec.
//!
//! Used by the resident launcher (`barchan-jail`, this crate's program), by the native runtime,
//! which speaks [`proto`] with it, and by the in-sandbox daemon, which starts everything through
//! [`child`]. Never: connections beyond its own socket, threads, tokio. The only crate with unsafe
//! code, all of it in [`sys`].

pub mod blank;
pub mod capture;
pub mod cgroup;
pub mod child;
mod content;
pub mod devices;
pub mod diff;
pub mod disk;
pub mod egress;
pub mod enter;
mod faults;
pub mod frames;
pub mod guest;
pub mod host_paths;
pub mod ids;
pub mod launcher;
pub mod log;
pub mod log_ring;
pub mod loopback;
pub mod merge;
pub mod mounts;
pub mod privileges;
pub mod proto;
pub mod redirect;
pub mod seal;
pub mod seccomp;
pub mod session;
pub mod spec;
pub mod spelling;
pub mod standby;
pub mod sys;
pub mod tree;
pub mod volumes;
pub mod workshop;
