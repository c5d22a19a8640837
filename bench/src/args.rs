//! The command line.

use std::path::PathBuf;

use clap::{Args as Flags, Parser, Subcommand, ValueEnum};

/// Measures Barchan beside other sandboxes.
#[derive(Debug, Parser)]
#[command(name = "barchan-bench", max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure, print a table, write the figures
    Run(Box<Options>),
    /// Start other sandboxes on request; the measuring process starts this one
    #[command(hide = true)]
    Peers(PeersOrder),
}

/// What is measured, and with what.
#[derive(Debug, Clone, Flags)]
pub(crate) struct Options {
    /// The program under test
    #[arg(long, default_value = "target/release/barchan", value_name = "FILE")]
    pub(crate) barchan: PathBuf,
    /// The folder with barchan-jail and barchan-execd, for servers and for calls without one
    #[arg(long, value_name = "DIR")]
    pub(crate) guests: PathBuf,
    /// The static program that sandboxes without a server run
    #[arg(long, value_name = "FILE")]
    pub(crate) hello: PathBuf,
    /// A Python that has `barchan` and `opensandbox`; without it their figures are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) python: Option<PathBuf>,
    /// Where the figures are written
    #[arg(long, default_value = "out/bench/results.json", value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Measure these only; may repeat
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) only: Vec<Part>,
    /// Rounds of each figure of latency, after the warm-up
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub(crate) rounds: usize,
    /// Rounds at the start that do not count
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) warm_up: usize,
    /// Time between two creates of one client, so that no burst hides what a lone caller waits for
    #[arg(long, default_value_t = 30, value_name = "MS")]
    pub(crate) gap_ms: u64,
    /// How long the rate of sandboxes is measured
    #[arg(long, default_value_t = 10, value_name = "S")]
    pub(crate) rate_s: u64,
    /// Idle sandboxes whose memory is measured
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub(crate) idle: usize,
    /// Size of the file that is moved in and out
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    pub(crate) file_mib: u64,
    /// Run everything at a low real-time priority, which hides what else the machine does. The
    /// kernel refuses such processes in its version 1 CPU groups, so CPU time is not limited then
    #[arg(long)]
    pub(crate) fifo: bool,
    /// It has that priority already
    #[arg(long, hide = true)]
    pub(crate) is_fifo: bool,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// From the request for a sandbox to the output of its first command
    Create,
    /// The calls of the lifecycle API, pools and lists among them
    Lifecycle,
    /// Commands in a sandbox that runs
    Command,
    /// Cells in a code context; pip must reach its registry, for the kernel
    Code,
    /// The runtime without a server, beside other sandboxes
    Library,
    /// Sandboxes per second
    Rate,
    /// A large file in and out
    Transfer,
    /// Snapshots, and sandboxes made of them
    Snapshot,
    /// Sealed layers, and what is made of them
    Layers,
    /// The file tools of agents, and a search beside ripgrep
    Tools,
    /// Connections to the outside, beside slirp4netns and pasta
    Network,
    /// Memory of idle sandboxes
    Idle,
}

impl Options {
    /// Whether something is to be measured.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// A root file system for other sandboxes, and the program in it.
#[derive(Debug, Clone, Flags)]
pub(crate) struct PeersOrder {
    /// An empty folder to work in
    #[arg(long)]
    pub(crate) work: PathBuf,
    /// Layers, the topmost first
    #[arg(long = "layer")]
    pub(crate) layers: Vec<PathBuf>,
    /// Trees of the host, as SOURCE=TARGET
    #[arg(long = "bind")]
    pub(crate) binds: Vec<String>,
    /// The program in it
    #[arg(long)]
    pub(crate) program: PathBuf,
    /// The same program on the host
    #[arg(long)]
    pub(crate) on_host: PathBuf,
}
