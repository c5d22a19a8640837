//! The flags of `barchan connections` and `barchan approvals`.

use barchan_wire::lifecycle::approval::ApprovalState;
use clap::{Args as Flags, Subcommand};

use crate::parse;

#[derive(Debug, Flags)]
pub(crate) struct Connections {
    /// Only what was refused
    #[arg(long)]
    pub(crate) denied: bool,
    /// Sandbox, by id or the beginning of one
    pub(crate) id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// Show what waits for somebody's word
    #[command(visible_alias = "ls")]
    List {
        /// Show those in this state instead: pending, approved, rejected or expired; may repeat
        #[arg(long, value_parser = parse::approval_state, value_name = "STATE")]
        state: Vec<ApprovalState>,
        /// Show all of them
        #[arg(long, conflicts_with = "state")]
        all: bool,
        /// Print ids only
        #[arg(long, short)]
        quiet: bool,
    },
    /// Show all that is known of one
    Show {
        /// Approval, by id or the beginning of one
        id: String,
    },
    /// Allow what waits
    Approve {
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Approvals, by id or the beginning of one
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Refuse what waits
    Reject {
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Approvals, by id or the beginning of one
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}
