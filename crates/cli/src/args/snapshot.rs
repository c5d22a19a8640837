//! The flags of `barchan snapshot`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Save what a running sandbox has written, and print the snapshot's id once it is ready
    Create {
        /// What to call it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Do not wait until it is ready
        #[arg(long)]
        no_wait: bool,
        /// Sandbox, by id or the beginning of one
        sandbox: String,
    },
    /// Show snapshots
    #[command(visible_alias = "ls")]
    List {
        /// Only of this sandbox, by its whole id
        #[arg(long, value_name = "ID")]
        sandbox: Option<String>,
        /// Only of this name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Only in this state, such as Ready; may repeat
        #[arg(long, value_name = "STATE")]
        state: Vec<String>,
        /// Print ids only
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show all that is known of a snapshot
    Inspect {
        /// Snapshot, by id or the beginning of one
        id: String,
    },
    /// Write a snapshot as an OCI image, in a tar archive
    Export {
        /// File to write, or - for the standard output; snapshot-ID.tar when not given
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Overwrite a file that exists
        #[arg(long)]
        force: bool,
        /// Leave out the host's own system, on which the snapshot stands
        #[arg(long)]
        without_host: bool,
        /// Snapshot, by id or the beginning of one
        id: String,
    },
    /// Make a snapshot of an OCI image in a tar archive, and print its id
    Import {
        /// What to call it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// File to read, or - for the standard input
        file: PathBuf,
    },
    /// Remove snapshots on which nothing stands
    Rm {
        /// Snapshots, by their ids or beginnings of them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}
