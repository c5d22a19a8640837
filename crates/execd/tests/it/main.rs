//! The real daemon on the bare host, unconfined, spoken to over its socket.

#![cfg(test)]

mod background;
mod bad_input;
mod commands;
mod directories;
mod download;
mod ends;
mod entrypoint;
mod environment;
mod files;
mod http;
mod metrics;
mod multipart;
mod output;
mod proxy;
mod streams;
mod upload;
mod world;
