//! The daemon inside every sandbox: commands, sessions, code, files, metrics. It is its PID 1.

mod api;
mod app;
mod boot;
mod clock;
mod code;
mod command;
mod config;
mod envfile;
mod environment;
mod fault;
mod files;
mod fs;
mod hooks;
mod init;
mod isolated;
mod limits;
mod metrics;
mod process;
mod program;
mod pty;
mod server;
mod session;
mod shield;
mod small_file;
mod trust;
mod users;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(config) = shield::up().and_then(|()| config::read(std::env::args_os().skip(1))) else {
        let _ = io::stderr().write_all(config::USAGE.as_bytes());
        return ExitCode::from(64);
    };
    match init::start(config) {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            let _ = writeln!(io::stderr(), "barchan-execd: cannot start: {error}");
            ExitCode::from(70)
        }
    }
}
