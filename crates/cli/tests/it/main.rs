//! The program as a user runs it: the built binary, against a server that the tests script.

#![cfg(test)]

mod chaos;
mod export;
mod fake;
mod files;
mod forward;
mod hostile;
mod keeper;
mod layers;
mod local;
mod logs;
mod once;
mod outbound;
mod program;
mod sandboxes;
mod settings;
mod soak;
mod tenancy;
mod terminal;
mod trees;
mod wedge;
mod whole;
mod world;
