//! Other sandboxes on the same root file system. They are started by a process of their own, in a
//! mount namespace where that root is assembled and where only version 1 control groups are seen:
//! some of them refuse a mix of both versions.

mod bundle;
pub(crate) mod driver;
mod root;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use barchan_runtime::image::ResolvedImage;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::server::PROGRAM;

/// A way to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Peer {
    /// No sandbox at all: what the machine takes to start the program.
    Bare,
    /// bubblewrap, with all that `--unshare-all` gives.
    Bwrap,
    /// crun, with limits.
    Crun,
    /// crun, told to leave control groups alone.
    CrunWithoutGroups,
    /// runc, with limits.
    Runc,
}

/// What the driver says of one run: milliseconds from before the start to the program's own first
/// act, or why there is none.
type Ran = Result<f64, String>;

/// What the driver says first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// What crun says on the machine as it is; `None` when it runs there.
    pub(crate) crun_refuses: Option<String>,
}

/// The process that starts them.
pub(crate) struct Peers {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it said first.
    pub(crate) greeting: Greeting,
    _work: TempDir,
}

impl Peers {
    /// Starts it with the layers and trees of an image.
    pub(crate) fn start(image: &ResolvedImage, on_host: &Path) -> Result<Self> {
        let work = tempfile::Builder::new()
            .prefix("barchan-peers-")
            .tempdir()?;
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "--"])
            .arg(fs::canonicalize("/proc/self/exe")?)
            .arg("peers")
            .arg("--work")
            .arg(work.path())
            .args(["--program", PROGRAM, "--on-host"])
            .arg(fs::canonicalize(on_host)?);
        for layer in &image.layers {
            command.arg("--layer").arg(layer);
        }
        for bind in &image.binds {
            let (source, target) = (bind.source.display(), bind.target.display());
            command.arg("--bind").arg(format!("{source}={target}"));
        }
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.context("cannot start `unshare` of util-linux")?;
        let orders = process.stdin.take().context("no standard input")?;
        let answers = process.stdout.take().context("no standard output")?;
        let mut peers = Self {
            process,
            orders,
            answers: BufReader::new(answers),
            greeting: Greeting::default(),
            _work: work,
        };
        peers.greeting = peers.answer().context("the peers cannot be prepared")?;
        Ok(peers)
    }

    /// Has one of them run the program.
    pub(crate) fn run(&mut self, peer: Peer) -> Ran {
        let order = serde_json::to_string(&peer).unwrap_or_default();
        let ran = writeln!(self.orders, "{order}").map_err(Into::into);
        let ran = ran.and_then(|()| self.answer::<Ran>());
        ran.unwrap_or_else(|error| Err(format!("{error:#}")))
    }

    fn answer<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = writeln!(self.orders);
        let _ = self.process.wait();
    }
}
