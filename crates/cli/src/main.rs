//! The one program: command line, server, and the guests it puts into sandboxes.
//!
//! Zone: host, trusted. Never: logic. It parses, calls, prints.

mod args;
mod command;
mod config;
mod guests;
mod keeper;
mod native;
mod output;
mod owned;
mod parse;
mod server;
mod stop;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let output = output::Output::new(args.global.json, &config::Terminal::read());
    if args.command.is_kept()
        && let Err(error) = keeper::renounce()
    {
        return output.fail(
            &anyhow::Error::new(error).context("cannot give up rights"),
            1,
        );
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&anyhow::Error::new(error).context("cannot start"), 1),
    };
    let code = runtime.block_on(command::run(args, &output));
    // A thread may still sit in a read of standard input; it must not hold up the exit.
    runtime.shutdown_background();
    code
}
