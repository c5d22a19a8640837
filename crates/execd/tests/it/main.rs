//! The real daemon on the bare host, unconfined, spoken to over its socket.

#![cfg(test)]

mod background;
mod bad_input;
mod code;
mod commands;
mod conditional;
mod directories;
mod download;
mod ends;
mod entrypoint;
mod environment;
mod exec;
mod files;
mod fs;
mod http;
mod identity;
mod injected;
mod isolated;
mod kernel;
mod metrics;
mod multipart;
mod names;
mod once;
mod output;
mod own_files;
mod proxy;
mod pty;
mod session_ends;
mod sessions;
mod streams;
mod tar;
mod tcp;
mod upload;
mod watch;
mod world;
