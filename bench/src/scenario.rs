//! What is measured, in which order.

mod code;
mod command;
mod create;
mod idle;
mod layers;
mod library;
mod lifecycle;
mod network;
mod rate;
mod snapshot;
mod tools;
mod transfer;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use barchan_daemon::clock::Clock;

use crate::args::{Options, Part};
use crate::host::{self, Host};
use crate::report::{self, Group, Report};
use crate::samples::Samples;
use crate::server::Store;

/// Hides version 1 CPU groups from the server, which a real-time process may not enter, and takes
/// on a low real-time priority.
const AS_FIFO: &str = "umount /sys/fs/cgroup/cpu 2>/dev/null; exec chrt --fifo 1 \"$@\"";

type Measure = fn(&Options, &Store) -> Result<Measured>;

/// What one part found.
pub(crate) struct Measured {
    title: &'static str,
    samples: Vec<Samples>,
    notes: Vec<String>,
}

/// Measures, prints, writes. The exit code is 1 when something failed or a goal was missed.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if options.fifo && !options.is_fifo {
        return Err(become_fifo()).context("cannot take on real-time priority");
    }
    let version = Command::new(&options.barchan).arg("--version").output();
    let version = version.with_context(|| format!("{}", options.barchan.display()))?;
    let mut report = Report {
        started: Clock::system().now().wall.to_string(),
        version: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
        host: Host::here(),
        fifo: options.fifo,
        groups: Vec::new(),
    };
    report.print_head()?;
    let store = Store::build(options)?;
    let parts: [(Part, Measure); 12] = [
        (Part::Create, create::measure),
        (Part::Lifecycle, lifecycle::measure),
        (Part::Command, command::measure),
        (Part::Code, code::measure),
        (Part::Library, library::measure),
        (Part::Rate, rate::measure),
        (Part::Transfer, transfer::measure),
        (Part::Snapshot, snapshot::measure),
        (Part::Layers, layers::measure),
        (Part::Tools, tools::measure),
        (Part::Network, network::measure),
        (Part::Idle, idle::measure),
    ];
    for (part, measure) in parts {
        if options.wants(part) {
            report::progress(&format!("measuring {part:?}").to_lowercase());
            let before = host::load();
            let measured = measure(options, &store)?;
            let group = Group {
                title: measured.title,
                load: (before, host::load()),
                figures: measured.samples.iter().map(Samples::figure).collect(),
                notes: measured.notes,
            };
            group.print()?;
            report.groups.push(group);
        }
    }
    report.write(&options.out)?;
    Ok(ExitCode::from(u8::from(report.has_faults())))
}

/// Becomes this program again, at real-time priority. Returns only when that is impossible.
fn become_fifo() -> std::io::Error {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return error,
    };
    Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "--",
            "sh",
            "-c",
            AS_FIFO,
            "sh",
        ])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .arg("--is-fifo")
        .exec()
}
