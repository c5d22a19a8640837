//! The way out of sandboxes: their connections and questions to the DNS arrive here, are judged,
//! and go on from here. One program for all sandboxes of a host.

#![forbid(unsafe_code)]

mod answers;
mod api;
mod app;
mod asks;
mod beginning;
mod call;
mod calls;
mod config;
mod descriptors;
mod dial;
mod dns;
mod door;
mod events;
mod framing;
mod handover;
mod intercept;
mod ledger;
mod limits;
mod line;
mod log;
mod meter;
mod peer;
mod pipes;
mod refusal;
mod relay;
mod requests;
mod ruling;
mod sandbox;
mod server;
mod start;

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(config) = config::read(std::env::args_os().skip(1)) else {
        log::say(config::USAGE);
        return ExitCode::from(64);
    };
    match start::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::say(&format!("cannot start: {error}"));
            ExitCode::from(70)
        }
    }
}
