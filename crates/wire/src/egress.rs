//! Pure. What the server and the egress program tell each other.
//!
//! The egress program serves HTTP on a Unix socket of the host, to the server alone:
//!
//! | request | body | answer |
//! |---|---|---|
//! | `PUT /settings` | [`Settings`] | 204 |
//! | `GET /sandboxes` | | [`GuardedList`] |
//! | `PUT /sandboxes/{id}` | [`Guarded`] | 204; until then nothing of it goes out |
//! | `DELETE /sandboxes/{id}` | | 204 |
//! | `/sandboxes/{id}/…` | what port 18080 of a sandbox serves, as `policy` | |
//! | `POST /policy/check` | a [`NetworkPolicy`] | 204; 400 with a text that says what is wrong |
//! | `GET /events?after={seq}` | | lines of [`Event`], for as long as the caller listens |
//! | `PUT /asks/{id}` | [`Decision`] | 204; 404 when nobody waits for it any more |
//! | `GET /calls/{id}` | | 101 and the stream; 404 when nobody waits for it |
//! | `DELETE /calls/{id}` | | 204: the peer is not to be had |
//! | `GET /healthz` | | `ok` |
//!
//! A vault that says nothing sensible is refused with 400 and a text, and then all is as it was.
//!
//! Every answer about a policy carries [`POLICY_VERSION`] and the policy as it is then. Errors are
//! lines of text.
//!
//! A sandbox that connects to a peer is a [`What::Called`] event, and waits until the server brings
//! a stream to the peer's port.
//!
//! Why something became of a connection or a question is told by codes, of which
//! `docs/reference/egress.md` has the table.

use core::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::lifecycle::NetworkPolicy;
use crate::lifecycle::time::Time;

pub mod vault;

use vault::Vault;

/// The port of a sandbox at which its outbound policy is read and changed; nobody listens there
/// inside.
pub const EGRESS_PORT: u16 = 18080;
/// The header with the word that opens that port.
pub const EGRESS_AUTH: &str = "opensandbox-egress-auth";
/// The header of an answer about a policy that counts its changes, from 1.
pub const POLICY_VERSION: &str = "x-barchan-policy-version";

/// What holds for all sandboxes of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The resolvers that questions to the DNS go to, as `address:port`, the first that answers
    /// first.
    pub resolvers: Vec<String>,
    /// Targets that no sandbox reaches, whatever its policy says.
    #[serde(default)]
    pub deny_always: Vec<String>,
    /// Targets that every sandbox reaches, unless they are denied always.
    #[serde(default)]
    pub allow_always: Vec<String>,
    /// How long a connection waits for somebody who is asked, in seconds; then it is refused.
    pub ask_s: u32,
    /// Certificates by which servers are believed where TLS is opened, as PEM.
    #[serde(default)]
    pub roots: String,
}

/// One sandbox, as the server has it guarded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Guarded {
    /// Its rules; `None`: the internet is open, and nothing else.
    pub policy: Option<NetworkPolicy>,
    /// The count that its changes go on from.
    pub version: u64,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// Its credentials, if it may have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<Vault>,
    /// The sandboxes that it shares a private network with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
}

/// A sandbox that another one reaches by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its id.
    pub id: String,
    /// What the other calls it. Two peers may have one name.
    pub names: Vec<String>,
    /// The address that these names stand for, and that means nothing elsewhere.
    pub address: Ipv4Addr,
}

/// What a sandbox may use of the network. `None`: no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Connections at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Bytes in and out, while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Bytes a second, in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
}

/// The sandboxes that are guarded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedList {
    /// In the order of their ids.
    pub sandboxes: Vec<GuardedRow>,
}

/// A guarded sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardedRow {
    /// Its id.
    pub id: String,
    /// How often its policy was set or changed.
    pub version: u64,
}

/// What `policy` answers; the contract of OpenSandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// `ok`.
    pub status: String,
    /// `deny_all`, `allow_all` or `enforcing`.
    pub mode: String,
    /// How it is enforced; `dns+nft`, since names and addresses both bite.
    pub enforcement_mode: String,
    /// What is worth saying about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The policy now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<NetworkPolicy>,
}

/// What becomes of a connection or a question to the DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is made.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// What a sandbox wanted to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A TCP connection.
    Tcp,
    /// A question to the DNS.
    Dns,
}

/// A connection or a question, and what became of it. All words in it may be the sandbox's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Its number, unique while the egress program runs.
    pub id: u64,
    /// What it is.
    pub protocol: Protocol,
    /// The name that it says or asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it goes; a question has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// On which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, as a stable code.
    pub reason: String,
    /// The rule that decided, as `allow example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// When it began.
    pub opened_at: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Time>,
    /// Bytes that left the sandbox.
    pub sent_bytes: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// Requests on it that got credentials.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credentials: u64,
}

/// What `x/connections` answers: those that are open, and the last that ended, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionList {
    /// The connections and questions.
    pub connections: Vec<Connection>,
    /// How many ended that are not listed any more.
    pub forgotten: u64,
}

/// Something that happened to a sandbox's traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place among all events since the egress program's start, from 1. A gap: some were
    /// forgotten before they were read.
    pub seq: u64,
    /// Whose.
    pub sandbox: String,
    /// What.
    pub what: What,
    /// The connection, as it was then.
    pub connection: Connection,
    /// Where somebody is asked: the number that a decision names, and until when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// Where a peer is called: what the stream to it is to be brought for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PeerCall>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// It was decided what becomes of it.
    Verdict,
    /// It waits for a decision.
    Asked,
    /// It waits for a stream to a peer.
    Called,
    /// It ended.
    Closed,
}

/// A connection that waits for a stream to a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCall {
    /// Its number, not to be guessed.
    pub id: String,
    /// The peer's id.
    pub peer: String,
    /// The port there.
    pub port: u16,
}

/// A connection that waits for somebody's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Its number, not to be guessed.
    pub id: String,
    /// When it is refused if nobody has said anything.
    pub until: Time,
}

/// Somebody's word about a connection that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether it is made.
    pub allow: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
