//! The process that starts other sandboxes: reads which, starts it, says how long it took.

use std::io::{self, BufRead, Read, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use super::{Greeting, Peer, bundle, root};
use crate::args::PeersOrder;
use crate::ticker;

/// Everything that a start needs.
struct Bench<'a> {
    order: &'a PeersOrder,
    runs: u64,
}

/// Follows orders until an empty line.
pub(crate) fn run(order: &PeersOrder) -> Result<ExitCode> {
    root::assemble(order)?;
    bundle::write(order)?;
    let mut bench = Bench { order, runs: 0 };
    let greeting = Greeting {
        crun_refuses: bench.start(Peer::Crun).err(),
    };
    root::hide_second_groups();
    say(&greeting)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        say(&bench.start(serde_json::from_str(&line)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say<T: serde::Serialize>(value: &T) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

impl Bench<'_> {
    /// Milliseconds from before the start to the moment that the program says it ran at.
    fn start(&mut self, peer: Peer) -> Result<f64, String> {
        self.runs += 1;
        let mut command = self.command(peer);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let before = ticker::wall_ns();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let mut text = String::new();
        let read = child
            .stdout
            .take()
            .map(|mut out| out.read_to_string(&mut text));
        let status = child.wait().map_err(|error| error.to_string())?;
        let ran_at: Option<i128> = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        match (read, ran_at) {
            (Some(Ok(_)), Some(ran_at)) if status.success() => Ok((ran_at - before) as f64 / 1e6),
            _ => {
                let mut words = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    let _ = stderr.read_to_string(&mut words);
                }
                Err(format!(
                    "{status}: {}",
                    words.lines().next().unwrap_or_default()
                ))
            }
        }
    }

    fn command(&self, peer: Peer) -> Command {
        let order = self.order;
        let program = &order.program;
        let name = format!("barchan-bench-{}-{}", std::process::id(), self.runs);
        match peer {
            Peer::Bare => Command::new(&order.on_host),
            Peer::Bwrap => {
                let mut command = Command::new("bwrap");
                command.args(["--unshare-all", "--ro-bind"]);
                command.arg(root::folder(order)).arg("/");
                command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"]);
                command.arg(program);
                command
            }
            Peer::Crun | Peer::CrunWithoutGroups | Peer::Runc => {
                let tool = if peer == Peer::Runc { "runc" } else { "crun" };
                let mut command = Command::new(tool);
                command.arg("--root").arg(order.work.join(tool));
                if peer == Peer::CrunWithoutGroups {
                    command.arg("--cgroup-manager=disabled");
                }
                let limits = peer != Peer::CrunWithoutGroups;
                command
                    .args(["run", "--bundle"])
                    .arg(bundle::folder(order, limits))
                    .arg(name);
                command
            }
        }
    }
}
