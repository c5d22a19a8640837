//! The daemon inside every sandbox: commands, files, metrics. It is the sandbox's PID 1.

mod api;
mod app;
mod boot;
mod clock;
mod command;
mod config;
mod envfile;
mod environment;
mod fault;
mod files;
mod init;
mod limits;
mod metrics;
mod process;
mod program;
mod server;
mod shield;
mod small_file;
mod users;

use std::io::{self, Write};
use std::process::ExitCode;

use tokio::runtime::Builder;
use tokio::task::LocalSet;

fn main() -> ExitCode {
    let Some(config) = shield::up().and_then(|()| config::read(std::env::args_os().skip(1))) else {
        let _ = io::stderr().write_all(config::USAGE.as_bytes());
        return ExitCode::from(64);
    };
    match run(config) {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            let _ = writeln!(io::stderr(), "barchan-execd: cannot start: {error}");
            ExitCode::from(70)
        }
    }
}

fn run(config: config::Config) -> io::Result<i32> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(32)
        .build()?;
    // Every task lives in this set and ends with it, before the program does.
    let tasks = LocalSet::new();
    // A spare waits inside, so that all this is done when it is asked for.
    let code = tasks.block_on(&runtime, async {
        match boot::open(config)? {
            Some(inherited) => init::run(inherited).await,
            None => Ok(0),
        }
    });
    drop(tasks);
    runtime.shutdown_background();
    code
}
