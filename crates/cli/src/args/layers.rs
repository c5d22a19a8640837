//! Pure. What follows `barchan layers`.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with the layers of sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum Layers {
    /// Seal what a running sandbox has written, and print the layer's number
    Seal {
        /// What to call it: the command that wrote it, say
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
        /// Seal nothing while a process uses the files, instead of copying them
        #[arg(long)]
        no_copy: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Show the layers of a sandbox
    #[command(visible_alias = "ls")]
    List {
        /// Print numbers only
        #[arg(long, short)]
        quiet: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Show what differs between two layers; without TO, between a layer and how the sandbox is now
    Diff {
        /// Print the lines that differ, as `patch -p1` and `git apply` take them
        #[arg(long, short, conflicts_with = "tar")]
        patch: bool,
        /// Write what was added or changed as a layer of an image; `-` for the standard output
        #[arg(long, value_name = "FILE")]
        tar: Option<PathBuf>,
        /// Overwrite that file
        #[arg(long, requires = "tar")]
        force: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layer to begin with, by its number; 0: how the sandbox was made; the last one when not
        /// given
        from: Option<u32>,
        /// Layer of which is shown what differs in it; one that is sealed for it, and forgotten
        /// afterwards, when not given
        to: Option<u32>,
    },
    /// Make a snapshot of a layer, and print its id: `barchan snapshot export` makes it an OCI image
    Commit {
        /// Layer, by its number; one that is sealed now when not given
        #[arg(long, value_name = "NUMBER")]
        layer: Option<u32>,
        /// What to call the snapshot
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Return before it is ready
        #[arg(long)]
        no_wait: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Start a sandbox anew with its files as they were; what runs in it is killed
    Undo {
        /// Do nothing while a command runs
        #[arg(long)]
        no_kill: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layer, by its number; 0: how the sandbox was made
        layer: u32,
    },
    /// Make sandboxes of a layer, which they share, and print their ids
    Fork {
        /// Layer, by its number; one that is sealed now when not given
        #[arg(long, value_name = "NUMBER")]
        layer: Option<u32>,
        /// How many sandboxes
        #[arg(long, short, value_name = "COUNT", default_value_t = 1)]
        count: u32,
        /// Time to live in seconds; what is left of the sandbox's own when not given
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Forget layers
    Rm {
        /// Sandbox, by id or the beginning of one
        sandbox: String,
        /// Layers, by their numbers
        #[arg(required = true, value_name = "NUMBER")]
        layers: Vec<u32>,
    },
}
