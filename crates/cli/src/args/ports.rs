//! The flags of `barchan port-forward`.

use std::net::{IpAddr, Ipv4Addr};

use clap::Args as Flags;

use crate::parse;

#[derive(Debug, Flags)]
pub(crate) struct PortForward {
    /// Address of this machine to listen on; whoever reaches it reaches the sandbox's
    /// port
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST.into(), value_name = "ADDRESS")]
    pub(crate) address: IpAddr,
    /// Sandbox, by id or the beginning of one
    pub(crate) id: String,
    /// Ports: the same here as inside, or LOCAL here and PORT inside; 0 is any that is free here
    #[arg(required = true, value_parser = parse::forward, value_name = "[LOCAL:]PORT")]
    pub(crate) ports: Vec<parse::Forward>,
}
