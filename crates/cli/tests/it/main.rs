//! The program as a user runs it: the built binary, against a server that the tests script.

#![cfg(test)]

mod chaos;
mod fake;
mod files;
mod local;
mod program;
mod sandboxes;
mod soak;
mod whole;
mod world;
