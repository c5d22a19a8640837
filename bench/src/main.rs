//! `barchan-bench`: measures what Barchan promises, beside other sandboxes, in one run.

mod api;
mod args;
mod host;
mod http;
mod peers;
mod python;
mod report;
mod samples;
mod scenario;
mod server;
mod snapshots;
mod ticker;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let done = match args::Args::parse().command {
        args::Command::Run(options) => scenario::run(&options),
        args::Command::Peers(order) => peers::driver::run(&order),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            report::complain(&error);
            ExitCode::from(2)
        }
    }
}
