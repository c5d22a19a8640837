//! Pure. The sandboxes that one of them reaches by name: its private networks, as it sees them.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::HashMap;

use barchan_wire::egress::Peer;
use barchan_wire::id::SandboxId;

use crate::name::{Name, NameError};

/// Most peers of one sandbox.
pub const PEERS_MAX: usize = 1024;
/// How long a program may keep the address of a peer, in seconds: peers come and go.
pub const TTL_S: u32 = 1;

/// The peers of one sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peers {
    names: HashMap<Name, Vec<Ipv4Addr>>,
    addresses: HashMap<Ipv4Addr, SandboxId>,
}

/// Why some peers are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeersError {
    /// Too many.
    #[error("a sandbox has at most {PEERS_MAX} peers, and these are {0}")]
    TooMany(usize),
    /// An id that is none.
    #[error("a peer's id is none")]
    Id,
    /// A name that is none.
    #[error("a peer's name is none: {0}")]
    Name(#[from] NameError),
    /// An address that two have.
    #[error("two peers have the address {0}")]
    Address(Ipv4Addr),
}

impl Peers {
    /// Takes over what the server says.
    pub fn read(wire: &[Peer]) -> Result<Self, PeersError> {
        if wire.len() > PEERS_MAX {
            return Err(PeersError::TooMany(wire.len()));
        }
        let mut peers = Self::default();
        for peer in wire {
            let id: SandboxId = peer.id.parse().map_err(|_| PeersError::Id)?;
            if peers.addresses.insert(peer.address, id).is_some() {
                return Err(PeersError::Address(peer.address));
            }
            for name in &peer.names {
                let all = peers.names.entry(Name::parse(name)?).or_default();
                if !all.contains(&peer.address) {
                    all.push(peer.address);
                }
            }
        }
        Ok(peers)
    }

    /// The addresses that a name stands for; `None`: it is no peer's.
    #[must_use]
    pub fn addresses(&self, name: &Name) -> Option<&[Ipv4Addr]> {
        self.names.get(name).map(Vec::as_slice)
    }

    /// Whose address this is.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Option<&SandboxId> {
        match address.to_canonical() {
            IpAddr::V4(address) => self.addresses.get(&address),
            IpAddr::V6(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
    const SECOND: &str = "1b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

    fn peer(id: &str, names: &[&str], last: u8) -> Peer {
        Peer {
            id: id.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            address: Ipv4Addr::new(198, 18, 0, last),
        }
    }

    fn addresses(peers: &Peers, name: &str) -> Vec<u8> {
        let all = peers.addresses(&Name::parse(name).unwrap());
        all.unwrap_or_default()
            .iter()
            .map(|it| it.octets()[3])
            .collect()
    }

    #[test]
    fn a_name_may_be_of_several() {
        let all = [peer(FIRST, &["db", "db.team"], 1), peer(SECOND, &["DB"], 2)];
        let peers = Peers::read(&all).unwrap();
        assert_eq!(addresses(&peers, "db"), [1, 2]);
        assert_eq!(addresses(&peers, "db.team"), [1]);
        assert_eq!(peers.addresses(&Name::parse("other").unwrap()), None);
        let at = |text: &str| peers.at(text.parse().unwrap()).map(SandboxId::as_str);
        assert_eq!(at("198.18.0.2"), Some(SECOND));
        assert_eq!(at("::ffff:198.18.0.1"), Some(FIRST));
        assert_eq!(at("198.18.0.3"), None);
        assert_eq!(at("::1"), None);
    }

    #[test]
    fn what_is_no_peer_is_not_taken() {
        let same = Ipv4Addr::new(198, 18, 0, 1);
        for (peers, expected) in [
            (vec![peer("x", &["a"], 1)], PeersError::Id),
            (
                vec![peer(FIRST, &[""], 1)],
                PeersError::Name(NameError::Empty),
            ),
            (
                vec![peer(FIRST, &[], 1), peer(SECOND, &[], 1)],
                PeersError::Address(same),
            ),
            (
                vec![peer(FIRST, &[], 1); PEERS_MAX + 1],
                PeersError::TooMany(PEERS_MAX + 1),
            ),
        ] {
            assert_eq!(Peers::read(&peers), Err(expected));
        }
    }
}
