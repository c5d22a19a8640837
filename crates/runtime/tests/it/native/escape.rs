//! From inside a sandbox, as its root: what is tried there fails, and works where the defence is
//! off.
//!
//! The attacks are Python in `escape/attacks/`, one function each. A row of a table names one, says
//! how it is refused in a sandbox, and where its positive control runs: the same function in the
//! same test, on the bare host or in namespaces that lack what a sandbox has. A row whose control
//! cannot run here (it needs root, or this kernel has nothing to attack) is still held to its
//! refusal; the test prints that it does not count.

mod arena;
mod facts;
mod files;
mod filter;
mod images;
mod kernel;
mod limits;
mod processes;
mod row;
mod sharing;
