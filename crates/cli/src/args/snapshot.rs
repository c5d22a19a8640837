//! The flags of `barchan snapshot`.

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
        /// Snapshot, by its id
        id: String,
    },
    /// Remove snapshots on which nothing stands
    Rm {
        /// Snapshots, by their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}
