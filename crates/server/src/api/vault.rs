//! The credentials of a sandbox at its port 18080: told without their values, and changed whole or
//! not at all.

use std::net::IpAddr;

use barchan_daemon::payload::Payload;
use barchan_wire::egress::vault::{BindingList, CredentialList, VaultState};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use http::{Method, Request, Response};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::errors::Refusal;
use super::reply::{self, Body};
use super::trail::Trail;
use super::{Api, Peer, body};
use crate::egress::Range;
use crate::lifecycle::LifecycleError;
use crate::vault::{Change, VaultError};

/// Largest body, in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Where all of it is.
const VAULT: &str = "/credential-vault";

type Answer = Result<Response<Body>, Refusal>;

/// What of a vault is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// All of it.
    Whole,
    /// Its credentials, or one by its name.
    Credentials(Option<String>),
    /// Its bindings, or one by its name.
    Bindings(Option<String>),
    /// The values, which nobody is shown.
    Values,
}

impl Place {
    /// What a path behind the port means, if it is about a vault at all.
    pub(super) fn of(rest: &str) -> Result<Option<Self>, Refusal> {
        let Some(rest) = rest.strip_prefix(VAULT) else {
            return Ok(None);
        };
        let nowhere = || Refusal::new(404, code::NOT_FOUND, "there is no such path");
        let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
        match parts.as_slice() {
            [""] => Ok(Some(Self::Whole)),
            ["", "_active"] => Ok(Some(Self::Values)),
            ["", "credentials"] => Ok(Some(Self::Credentials(None))),
            ["", "bindings"] => Ok(Some(Self::Bindings(None))),
            ["", "credentials", name] => Ok(Some(Self::Credentials(Some(decoded(name)?)))),
            ["", "bindings", name] => Ok(Some(Self::Bindings(Some(decoded(name)?)))),
            ["", ..] => Err(nowhere()),
            // Another word that begins alike.
            _ => Ok(None),
        }
    }
}

impl Api {
    /// Answers about a vault. Whoever calls this knows that the caller may open the port.
    pub(super) async fn vault(
        &self,
        peer: &Peer,
        id: &SandboxId,
        place: Place,
        request: Request<Payload>,
        trail: &mut Trail,
    ) -> Answer {
        let method = request.method().clone();
        let changes = place == Place::Whole && method != Method::GET;
        if changes {
            trail.leads_to_vault(None);
        }
        self.lifecycle.may_have_vault(id)?;
        match (place, &method) {
            (Place::Whole, &Method::POST | &Method::PATCH) => {
                let change = self.read_change(peer, request).await?;
                trail.leads_to_vault(Some(change.in_words()));
                let status = if method == Method::POST { 201 } else { 200 };
                let state = self.lifecycle.change_vault(id, change).await?;
                Ok(reply::json(status, &state))
            }
            (Place::Whole, &Method::DELETE) => {
                trail.leads_to_vault(Some(Change::Delete.in_words()));
                self.lifecycle.change_vault(id, Change::Delete).await?;
                Ok(reply::empty(204))
            }
            (place, &Method::GET) => shown(self.lifecycle.vault(id)?, place),
            (Place::Whole, _) => Err(Refusal::method(&[
                Method::GET,
                Method::POST,
                Method::PATCH,
                Method::DELETE,
            ])),
            _ => Err(Refusal::method(&[Method::GET])),
        }
    }

    async fn read_change(&self, peer: &Peer, request: Request<Payload>) -> Result<Change, Refusal> {
        if !is_private(peer.ip, &self.admission.vault_proxies) {
            return Err(LifecycleError::from(VaultError::Overheard).into());
        }
        let (head, body) = request.into_parts();
        let bytes = body::read(&head.headers, body, self.body_wait, BODY_BYTES_MAX).await?;
        match head.method {
            Method::POST => Ok(Change::Create(read(&bytes)?)),
            _ => Ok(Change::Patch(read(&bytes)?)),
        }
    }
}

/// Whether nobody between the caller and this server reads along: it speaks no TLS itself.
fn is_private(ip: Option<IpAddr>, proxies: &[Range]) -> bool {
    ip.is_none_or(|ip| ip.to_canonical().is_loopback() || proxies.iter().any(|range| range.has(ip)))
}

fn shown(state: VaultState, place: Place) -> Answer {
    let VaultState {
        revision,
        credentials,
        bindings,
    } = state;
    let missing = |kind, name| LifecycleError::from(VaultError::NoSuch { kind, name });
    match place {
        Place::Credentials(None) => Ok(reply::json(
            200,
            &CredentialList {
                revision,
                credentials,
            },
        )),
        Place::Bindings(None) => Ok(reply::json(200, &BindingList { revision, bindings })),
        Place::Credentials(Some(name)) => {
            let one = credentials.iter().find(|it| it.name == name);
            let one = one.ok_or_else(|| missing("credential", plain(&name)))?;
            Ok(reply::json(200, one))
        }
        Place::Bindings(Some(name)) => {
            let one = bindings.iter().find(|it| it.name == name);
            let one = one.ok_or_else(|| missing("binding", plain(&name)))?;
            Ok(reply::json(200, one))
        }
        Place::Whole | Place::Values => Ok(reply::json(
            200,
            &VaultState {
                revision,
                credentials,
                bindings,
            },
        )),
    }
}

/// Reads a body. What is wrong with it is told without what stands there, which may be a value.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        let told = error.to_string();
        let fields = ["unknown field", "missing field", "duplicate field"];
        let why = match fields.iter().any(|it| told.starts_with(it)) {
            true => plain(&told),
            false if error.is_data() => format!(
                "something at line {}, column {} is not what it should be",
                error.line(),
                error.column()
            ),
            false => format!("no JSON from line {} on", error.line()),
        };
        Refusal::parameter(format!("the vault cannot be read: {why}"))
    })
}

/// A text of a caller's for a message: short, and without what a terminal would obey.
fn plain(text: &str) -> String {
    let short: String = text.chars().take(200).collect();
    short.chars().filter(|it| !it.is_control()).collect()
}

fn decoded(name: &str) -> Result<String, Refusal> {
    let name = percent_decode_str(name).decode_utf8();
    name.map(Into::into)
        .map_err(|_| Refusal::new(404, code::NOT_FOUND, "there is no such path"))
}

#[cfg(test)]
mod tests {
    use barchan_wire::egress::vault::NewVault;

    use super::*;

    #[test]
    fn a_path_means_one_thing() {
        let credential = |name: &str| Some(Place::Credentials(Some(name.to_owned())));
        for (rest, expected) in [
            ("/policy", None),
            ("/credential-vaults", None),
            ("/credential-vault", Some(Place::Whole)),
            ("/credential-vault/", Some(Place::Whole)),
            ("/credential-vault/_active", Some(Place::Values)),
            (
                "/credential-vault/credentials",
                Some(Place::Credentials(None)),
            ),
            ("/credential-vault/bindings/", Some(Place::Bindings(None))),
            ("/credential-vault/credentials/a%40b", credential("a@b")),
        ] {
            assert_eq!(Place::of(rest).ok(), Some(expected), "{rest}");
        }
        for rest in [
            "/credential-vault/other",
            "/credential-vault/credentials/a/b",
            "/credential-vault//credentials",
            "/credential-vault/credentials/%ff",
        ] {
            assert!(Place::of(rest).is_err(), "{rest}");
        }
    }

    #[test]
    fn credentials_travel_where_nobody_reads_along() {
        let proxies = [Range::parse("192.0.2.0/24").unwrap()];
        for (ip, expected) in [
            (None, true),
            (Some("127.0.0.1"), true),
            (Some("127.9.9.9"), true),
            (Some("::1"), true),
            (Some("::ffff:127.0.0.1"), true),
            (Some("192.0.2.9"), true),
            (Some("::ffff:192.0.2.9"), true),
            (Some("198.51.100.1"), false),
            (Some("2001:db8::1"), false),
        ] {
            let ip = ip.map(|ip| ip.parse().unwrap());
            assert_eq!(is_private(ip, &proxies), expected, "{ip:?}");
        }
        let refusal = Refusal::from(LifecycleError::from(VaultError::Overheard));
        assert_eq!(refusal.status(), 426);
    }

    #[test]
    fn what_is_wrong_is_told_without_what_stands_there() {
        for (body, word) in [
            (r#"{"credentials": "hunter2"}"#, "column"),
            (
                r#"{"credentials": [{"name": "a", "source": "hunter2"}]}"#,
                "column",
            ),
            (
                r#"{"credentials": [{"name": "a", "source": {"type": "hunter2"}}]}"#,
                "column",
            ),
            (r#"{"credential": []}"#, "unknown field `credential`"),
            (
                r#"{"credentials": [{"name": "a"}]}"#,
                "missing field `source`",
            ),
            (r#"hunter2"#, "no JSON"),
            ("", "no JSON"),
        ] {
            let refusal = read::<NewVault>(body.as_bytes()).unwrap_err();
            let told = refusal.message();
            assert!(
                told.contains(word) && !told.contains("hunter2"),
                "{body}: {told}"
            );
            assert_eq!(refusal.status(), 400);
        }
    }
}
