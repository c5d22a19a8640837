//! Pure. Private networks: which sandboxes reach each other, and by what names.
//!
//! A network is a word that sandboxes of one owner have in common. Nobody makes it or deletes it.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};

use barchan_wire::egress::Peer;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::create::{NETWORK_NAME, NETWORKS};

/// Most networks of one sandbox.
const NETWORKS_MAX: usize = 8;
/// Longest name of a network or in one, in bytes; so long is a part of a name in the DNS.
const WORD_BYTES_MAX: usize = 63;
/// Most peers that one sandbox is told of.
const PEERS_MAX: usize = 1024;
/// Where the addresses of peers lie: RFC 2544 keeps them for tests of networks, so no host of the
/// internet has one.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// How many there are.
const ADDRESSES: u32 = 1 << 17;

/// What a sandbox takes part in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    networks: BTreeSet<String>,
    name: Option<String>,
}

/// One that may be a peer.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Its id.
    pub(crate) id: SandboxId,
    /// Whose it is.
    pub(crate) owner: Option<String>,
    /// What it takes part in.
    pub(crate) membership: Membership,
}

impl Membership {
    /// What the extensions of a request say; `None`: nothing of this.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub(crate) fn of(extensions: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let Some(text) = extensions.get(NETWORKS) else {
            return match extensions.contains_key(NETWORK_NAME) {
                true => Err(format!("{NETWORK_NAME} needs {NETWORKS}")),
                false => Ok(None),
            };
        };
        let networks: BTreeSet<String> = text.split(',').map(|it| it.trim().to_owned()).collect();
        if networks.len() > NETWORKS_MAX {
            return Err(format!("{NETWORKS} has more than {NETWORKS_MAX} networks"));
        }
        let name = extensions.get(NETWORK_NAME).cloned();
        if let Some(odd) = networks.iter().chain(&name).find(|word| !is_word(word)) {
            let shown: String = odd.chars().take(WORD_BYTES_MAX).collect();
            return Err(format!(
                "'{shown}' is no name for a network or in one: 1 to {WORD_BYTES_MAX} lower-case \
                 letters, digits and '-', which is neither first nor last, and not digits alone"
            ));
        }
        Ok(Some(Self { networks, name }))
    }

    fn shares(&self, other: &Self) -> bool {
        !self.networks.is_disjoint(&other.networks)
    }

    /// What the other calls this one.
    fn names_for(&self, id: &SandboxId, other: &Self) -> Vec<String> {
        let mut names = vec![id.to_string()];
        if let Some(name) = &self.name {
            names.push(name.clone());
            let shared = self.networks.intersection(&other.networks);
            names.extend(shared.map(|network| format!("{name}.{network}")));
        }
        names
    }
}

impl Member {
    /// Whether one reaches the other.
    pub(crate) fn reaches(&self, other: &Self) -> bool {
        self.owner == other.owner && self.membership.shares(&other.membership)
    }
}

/// Whom a member reaches, itself among them; the same whatever order they come in.
pub(crate) fn peers(member: &Member, all: impl IntoIterator<Item = Member>) -> Vec<Peer> {
    let mut others: Vec<Member> = all.into_iter().filter(|it| member.reaches(it)).collect();
    others.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    others.truncate(PEERS_MAX);
    let mut taken = BTreeSet::new();
    let peer = |other: Member| {
        let mut at = place(&other.id);
        while !taken.insert(at) {
            at = (at + 1) % ADDRESSES;
        }
        Peer {
            names: other.membership.names_for(&other.id, &member.membership),
            address: Ipv4Addr::from(u32::from(FIRST) + at),
            id: other.id.to_string(),
        }
    };
    others.into_iter().map(peer).collect()
}

/// Where a sandbox would be if nobody else were there: FNV-1a of its id, so that others who come
/// and go do not move it.
fn place(id: &SandboxId) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    id.as_str().bytes().fold(0x811c_9dc5, mix) % ADDRESSES
}

fn is_word(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=WORD_BYTES_MAX).contains(&word.len())
        && word.bytes().all(is_plain)
        && !word.starts_with('-')
        && !word.ends_with('-')
        && !word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extensions(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        all.iter().map(own).collect()
    }

    fn member(digit: char, owner: Option<&str>, networks: &str, name: Option<&str>) -> Member {
        let mut all = vec![(NETWORKS, networks)];
        all.extend(name.map(|name| (NETWORK_NAME, name)));
        Member {
            id: format!("{digit}b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f")
                .parse()
                .unwrap(),
            owner: owner.map(str::to_owned),
            membership: Membership::of(&extensions(&all)).unwrap().unwrap(),
        }
    }

    #[test]
    fn peers_have_a_network_and_an_owner_in_common() {
        let me = member('0', None, "team,other", Some("web"));
        let all = [
            me.clone(),
            member('1', None, "team", Some("db")),
            member('2', None, "third", Some("db")),
            member('3', Some("acme"), "team", Some("db")),
            member('4', None, "other, team", None),
        ];
        let peers = peers(&me, all);
        let names: Vec<&[String]> = peers.iter().map(|peer| &peer.names[1..]).collect();
        let expected: [&[&str]; 3] = [&["web", "web.other", "web.team"], &["db", "db.team"], &[]];
        assert_eq!(names, expected);
        assert!(peers.iter().all(|peer| peer.names[0] == peer.id));
    }

    #[test]
    fn an_address_stays_when_others_come() {
        let me = member('0', None, "team", None);
        let alone = peers(&me, [me.clone()]);
        let all: Vec<Member> = "fedcba9876543210"
            .chars()
            .map(|digit| member(digit, None, "team", None))
            .collect();
        let many = peers(&me, all);
        assert_eq!(many[0], alone[0]);
        let addresses: BTreeSet<Ipv4Addr> = many.iter().map(|peer| peer.address).collect();
        assert_eq!(addresses.len(), 16);
        assert!(
            addresses
                .iter()
                .all(|it| matches!(it.octets(), [198, 18 | 19, ..]))
        );
    }

    #[test]
    fn what_names_no_network_is_refused() {
        for (networks, name, is_fine) in [
            ("team", None, true),
            ("team, other", Some("db-1"), true),
            ("", None, false),
            ("team,", None, false),
            ("Team", None, false),
            ("a.b", None, false),
            ("-a", None, false),
            ("12", None, false),
            ("team", Some(""), false),
            ("team", Some("db.x"), false),
            ("a,b,c,d,e,f,g,h,i", None, false),
        ] {
            let mut all = vec![(NETWORKS, networks)];
            all.extend(name.map(|name| (NETWORK_NAME, name)));
            let read = Membership::of(&extensions(&all));
            assert_eq!(read.is_ok(), is_fine, "{networks:?} {name:?} {read:?}");
        }
        assert!(Membership::of(&extensions(&[(NETWORK_NAME, "db")])).is_err());
        assert_eq!(Membership::of(&extensions(&[])), Ok(None));
    }
}
