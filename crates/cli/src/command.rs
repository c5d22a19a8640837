//! One file per command; this one sends each on its way.

mod approvals;
mod audit;
mod completion;
mod config;
mod connections;
mod cp;
mod create;
mod doctor;
mod each;
mod exec;
mod image;
mod init_config;
mod key;
mod kill;
mod layers;
mod list;
mod pause;
mod port_forward;
mod run;
mod saved;
mod serve;
mod snapshot;
mod stream;
mod tenant;
mod terminal;
mod volume;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Args, Command};
use crate::output::{Output, is_broken_pipe};

/// The exit code when a command in a sandbox could not be run or watched to its end. Its own codes
/// are passed on unchanged, so ours must be one that few programs use.
const NOT_RUN: u8 = 125;
/// The exit code of a program whose reader went away, as the shell reports it.
const BROKEN_PIPE: u8 = 128 + 13;

/// Carries out a command and gives the program's exit code.
pub(crate) async fn run(args: Args, output: &Output) -> ExitCode {
    let global = &args.global;
    let failure = match args.command {
        Command::Run(_) | Command::Exec(_) | Command::Shell(_) => NOT_RUN,
        _ => 1,
    };
    let done = match args.command {
        Command::Run(flags) => run::run(global, flags, output).await,
        Command::Create(flags) => ok(create::run(global, flags, output).await),
        Command::List(flags) => ok(list::run(global, flags, output).await),
        Command::Exec(flags) => exec::run(global, flags, output).await,
        Command::Shell(flags) => terminal::shell(global, flags, output).await,
        Command::Cp(flags) => cp::run(global, &flags, output).await,
        Command::PortForward(flags) => port_forward::run(global, flags, output).await,
        Command::Pause(flags) => pause::run(global, flags, output).await,
        Command::Resume(flags) => pause::resume(global, flags, output).await,
        Command::Kill(flags) => kill::run(global, flags, output).await,
        Command::InitConfig(flags) => ok(init_config::run(&flags, output)),
        Command::Config(flags) => config::run(global, flags, output).await,
        Command::Image(flags) => ok(image::run(global, flags, output).await),
        Command::Volume(flags) => ok(volume::run(global, flags, output).await),
        Command::Key(flags) => ok(key::run(global, flags, output).await),
        Command::Tenant(flags) => ok(tenant::run(global, flags, output).await),
        Command::Audit(flags) => ok(audit::run(global, &flags, output).await),
        Command::Connections(flags) => ok(connections::run(global, flags, output).await),
        Command::Approvals(flags) => approvals::run(global, flags, output).await,
        Command::Snapshot(flags) => snapshot::run(global, flags, output).await,
        Command::Layers(flags) => layers::run(global, flags, output).await,
        Command::Doctor => doctor::run(output),
        Command::Serve(flags) => serve::run(global, flags).await,
        Command::Completion(flags) => ok(completion::run(&flags, output)),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => output.fail(&error, failure),
    }
}

fn ok(done: Result<()>) -> Result<u8> {
    done.map(|()| 0)
}
