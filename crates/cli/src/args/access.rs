//! The flags of `barchan key`, `barchan tenant` and `barchan audit`.

use std::time::Duration;

use clap::{Args as Flags, Subcommand};

use crate::parse;

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key; it is printed once, and never shown again
    Create(NewKey),
    /// Show keys: whose they are, when they end, when they were used
    #[command(visible_alias = "ls")]
    List,
    /// Replace a key by another of the same id, and print that once
    Rotate {
        /// How long the old key works on, such as 10m; without this it ends at once
        #[arg(long, value_parser = parse::duration, value_name = "TIME")]
        grace: Option<Duration>,
        /// Id of the key
        id: String,
    },
    /// Take keys away, at once
    Revoke {
        /// Ids of keys
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Debug, Flags)]
pub(crate) struct NewKey {
    /// Tenant whose key it is to be
    #[arg(long, value_name = "NAME", required_unless_present = "admin")]
    pub(crate) tenant: Option<String>,
    /// Make it a key of an admin, who may do everything
    #[arg(long, conflicts_with = "tenant")]
    pub(crate) admin: bool,
    /// When it ends, such as 30d; without this it does not
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    pub(crate) expires: Option<Duration>,
    /// What to call it
    pub(crate) label: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tenant {
    /// Make a tenant
    Create {
        #[command(flatten)]
        terms: Terms,
        /// Its name: lower-case letters, digits and single inner hyphens
        name: String,
    },
    /// Show tenants: what they have and what they may have
    #[command(visible_alias = "ls")]
    List,
    /// Replace what holds for a tenant: what is not named has no limit any more
    Set {
        #[command(flatten)]
        terms: Terms,
        /// Its name
        name: String,
    },
    /// Remove tenants that have neither keys nor sandboxes
    Rm {
        /// Names of tenants
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

/// What holds for a tenant.
#[derive(Debug, Flags)]
pub(crate) struct Terms {
    /// Most sandboxes
    #[arg(long, value_name = "COUNT")]
    pub(crate) sandboxes: Option<u64>,
    /// CPU of all sandboxes together, in cores such as 0.5 or 16
    #[arg(long, value_name = "CORES")]
    pub(crate) cpu: Option<String>,
    /// Memory of all sandboxes together, such as 64Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// What all sandboxes together may write to their file systems, such as 100Gi
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<String>,
    /// Most snapshots
    #[arg(long, value_name = "COUNT")]
    pub(crate) snapshots: Option<u64>,
    /// Requests in a second with each key; without this, as the server's settings say
    #[arg(long, value_name = "COUNT")]
    pub(crate) rate: Option<u64>,
    /// How many of them may come at once after a silence
    #[arg(long, value_name = "COUNT", requires = "rate")]
    pub(crate) burst: Option<u64>,
}

#[derive(Debug, Flags)]
pub(crate) struct Audit {
    /// Go on with what is noted from now on
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only what is no older, such as 10m or 2h
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    pub(crate) since: Option<Duration>,
    /// Only what concerns this sandbox, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    pub(crate) sandbox: Option<String>,
    /// Only what this tenant did
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only what was done with the key of this id
    #[arg(long, value_name = "ID")]
    pub(crate) key: Option<String>,
}
