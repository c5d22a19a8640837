//! The rules of a sandbox's network namespace, as nftables takes them.
//!
//! ```text
//! table inet barchan {
//!     chain way_out {
//!         type filter hook prerouting priority mangle; policy drop;
//!         ip daddr 127.0.0.0/8 accept
//!         ip daddr 192.0.0.8 accept
//!         ip6 daddr ::1 accept
//!         ip6 daddr fd62:6172:6368:616e::8 accept
//!         meta l4proto tcp tproxy to :1 accept
//!         udp dport 53 tproxy to :53 accept
//!         meta l4proto tcp reject with tcp reset
//!         reject with icmpx port-unreachable
//!     }
//! }
//! ```

use super::netlink::{Attributes, Batch, Part, Verb};
use super::{DNS_PORT, OWN_V4, OWN_V6, TCP_PORT};

/// Kinds of messages; those of nftables lie behind its own number.
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
const NFTABLES: u16 = 10;

const TABLE: &str = "barchan";
const CHAIN: &str = "way_out";
/// Both families.
const INET: u8 = 1;
/// Where packets come in, before anybody looks whose they are, and at that, before what is usual.
const PREROUTING: u32 = 0;
const MANGLE: i32 = -150;

/// Registers: of the verdict, and one for everything else.
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// What `meta` looks at.
const FAMILY: u32 = 15;
const PROTOCOL: u32 = 16;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Which head `payload` looks at.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// Ways to refuse.
const RESET: u32 = 1;
const UNREACHABLE: u32 = 2;
const PORT: u8 = 1;

/// All of them, in one batch.
pub(super) fn all() -> Batch {
    let mut batch = Batch::new(Part::Netfilter);
    batch.message(BEGIN, Verb::Frame, &[0, 0, 0, NFTABLES as u8], |_| {});
    let inet = [INET, 0, 0, 0];
    batch.message(NEW_TABLE, Verb::Make, &inet, |it| it.word(1, TABLE));
    batch.message(NEW_CHAIN, Verb::Make, &inet, |it| {
        it.word(1, TABLE);
        it.word(3, CHAIN);
        it.nest(4, |hook| {
            hook.number(1, PREROUTING);
            hook.add(2, &MANGLE.to_be_bytes());
        });
        it.number(5, DROP);
        it.word(7, "filter");
    });
    rule(&mut batch, |it| to_address(it, IPV4, 16, &[127]));
    rule(&mut batch, |it| to_address(it, IPV4, 16, &OWN_V4.octets()));
    let loopback = std::net::Ipv6Addr::LOCALHOST.octets();
    rule(&mut batch, |it| to_address(it, IPV6, 24, &loopback));
    rule(&mut batch, |it| to_address(it, IPV6, 24, &OWN_V6.octets()));
    rule(&mut batch, |it| {
        is_meta(it, PROTOCOL, TCP);
        tproxy(it, TCP_PORT);
        verdict(it, ACCEPT);
    });
    rule(&mut batch, |it| {
        is_meta(it, PROTOCOL, UDP);
        is_at(it, TRANSPORT, 2, &DNS_PORT.to_be_bytes());
        tproxy(it, DNS_PORT);
        verdict(it, ACCEPT);
    });
    rule(&mut batch, |it| {
        is_meta(it, PROTOCOL, TCP);
        reject(it, RESET);
    });
    rule(&mut batch, |it| reject(it, UNREACHABLE));
    batch.message(END, Verb::Frame, &[0, 0, 0, NFTABLES as u8], |_| {});
    batch
}

fn rule(batch: &mut Batch, fill: impl FnOnce(&mut Attributes<'_>)) {
    batch.message(NEW_RULE, Verb::Append, &[INET, 0, 0, 0], |it| {
        it.word(1, TABLE);
        it.word(2, CHAIN);
        it.nest(4, fill);
    });
}

/// Lets through what goes to an address, or to all that begin as it does.
fn to_address(it: &mut Attributes<'_>, family: u8, offset: u32, start: &[u8]) {
    is_meta(it, FAMILY, family);
    is_at(it, NETWORK, offset, start);
    verdict(it, ACCEPT);
}

fn expression(it: &mut Attributes<'_>, name: &str, fill: impl FnOnce(&mut Attributes<'_>)) {
    it.nest(1, |it| {
        it.word(1, name);
        it.nest(2, fill);
    });
}

fn is_meta(it: &mut Attributes<'_>, key: u32, value: u8) {
    expression(it, "meta", |it| {
        it.number(1, REGISTER);
        it.number(2, key);
    });
    equals(it, &[value]);
}

fn is_at(it: &mut Attributes<'_>, head: u32, offset: u32, bytes: &[u8]) {
    expression(it, "payload", |it| {
        it.number(1, REGISTER);
        it.number(2, head);
        it.number(3, offset);
        it.number(4, bytes.len() as u32);
    });
    equals(it, bytes);
}

fn equals(it: &mut Attributes<'_>, bytes: &[u8]) {
    expression(it, "cmp", |it| {
        it.number(1, REGISTER);
        it.number(2, 0);
        it.nest(3, |it| it.add(1, bytes));
    });
}

/// Hands the packet to the socket at this port, whatever address it is for; without such a socket
/// the rule does not fit.
fn tproxy(it: &mut Attributes<'_>, port: u16) {
    expression(it, "immediate", |it| {
        it.number(1, REGISTER);
        it.nest(2, |it| it.add(1, &port.to_be_bytes()));
    });
    expression(it, "tproxy", |it| {
        it.number(1, 0);
        it.number(3, REGISTER);
    });
}

fn verdict(it: &mut Attributes<'_>, code: u32) {
    expression(it, "immediate", |it| {
        it.number(1, VERDICT);
        it.nest(2, |it| it.nest(2, |it| it.number(1, code)));
    });
}

fn reject(it: &mut Attributes<'_>, way: u32) {
    expression(it, "reject", |it| {
        it.number(1, way);
        it.add(2, &[PORT]);
    });
}
