//! `barchan completion`: the completion script of a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Args, Completion};
use crate::output::Output;

pub(super) fn run(flags: &Completion, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Args::command(), "barchan", &mut script);
    Ok(output.stdout(&script)?)
}
