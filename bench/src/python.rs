//! Clients in Python: each in a process of its own that stays warm, asked line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The script that speaks for them.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients.py");

/// A client that waits for orders.
pub(crate) struct Client {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What it says of one call.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Told {
    /// How long the call took, in milliseconds.
    #[serde(default)]
    pub(crate) ms: f64,
    /// How often the client slept meanwhile.
    #[serde(default)]
    pub(crate) sleeps: u32,
    /// Why there is no time.
    pub(crate) error: Option<String>,
}

impl Client {
    /// Starts one of a kind: `barchan`, `sdk` or `sdk-async`.
    pub(crate) fn start(
        python: &Path,
        kind: &str,
        image: &str,
        (address, key): (&str, &str),
    ) -> Result<Self> {
        let mut process = Command::new(python)
            .args([SCRIPT, kind, image, address])
            .env("BENCH_KEY", key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let orders = process.stdin.take().context("no standard input")?;
        let answers = process.stdout.take().context("no standard output")?;
        Ok(Self {
            process,
            orders,
            answers: BufReader::new(answers),
        })
    }

    /// Has one call made: `create` or `command`.
    pub(crate) fn ask(&mut self, call: &str) -> Result<f64, String> {
        self.told(call).map(|told| told.ms)
    }

    /// Has one call made, and tells how often the client slept.
    pub(crate) fn told(&mut self, call: &str) -> Result<Told, String> {
        let mut line = String::new();
        let asked = writeln!(self.orders, "{call}").and_then(|()| self.orders.flush());
        let read = asked.and_then(|()| self.answers.read_line(&mut line));
        read.map_err(|error| error.to_string())?;
        let told: Told = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        told.error.clone().map_or(Ok(told), Err)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = writeln!(self.orders, "end");
        let _ = self.process.wait();
    }
}
