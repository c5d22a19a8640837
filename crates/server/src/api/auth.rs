//! Who may: the key of the settings, the keys that admins made, and the token of each sandbox.

use barchan_wire::egress::EGRESS_AUTH;
use barchan_wire::header::{API_KEY, API_KEY_ALIAS, SANDBOX_TOKEN, SECURE_ACCESS};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{Time, code};
use barchan_wire::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::errors::Refusal;
use super::identity::{Beside, Identity};
use crate::access::{Found, Keys};

/// Where keys for the API's own routes come. Behind the proxy the alias may be for the program
/// inside.
pub(super) const KEY_HEADERS: [&str; 2] = [API_KEY, API_KEY_ALIAS];

/// Checks keys and tokens.
#[derive(Clone)]
pub(crate) struct Gate {
    /// `None` when the operator asks for no key.
    key: Option<Secret>,
    /// What tokens are made of; the same after a restart.
    seed: Secret,
    /// The keys that admins made.
    keys: Keys,
}

impl Gate {
    pub(crate) fn new(key: Option<Secret>, seed: Secret, keys: Keys) -> Self {
        Self { key, seed, keys }
    }

    /// The same tokens behind another key.
    pub(crate) fn with_key(&self, key: Option<Secret>) -> Self {
        Self::new(key, self.seed.clone(), self.keys.clone())
    }

    /// Tells the key of the settings from another one; `None` when no key is asked for.
    pub(crate) fn mark(&self) -> Option<u64> {
        let digest = Sha256::digest(self.key.as_ref()?.reveal());
        digest.first_chunk().map(|mark| u64::from_le_bytes(*mark))
    }

    /// The token that opens one sandbox's ports.
    pub(super) fn token(&self, id: &SandboxId) -> String {
        self.made_of(&[id.as_str()])
    }

    /// The token that opens what port 18080 of one sandbox serves, and nothing else.
    pub(super) fn egress_token(&self, id: &SandboxId) -> String {
        self.made_of(&["egress:", id.as_str()])
    }

    /// A text that nobody else can make of these.
    fn made_of(&self, parts: &[&str]) -> String {
        // A key of any length is fine, so this cannot fail; a token nobody can know would follow.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.seed.reveal().as_bytes()) else {
            return uuid::Uuid::new_v4().to_string();
        };
        parts.iter().for_each(|part| mac.update(part.as_bytes()));
        hex::encode(mac.finalize().into_bytes())
    }

    /// Who shows a key, or anybody where none is asked for. In `ours` nobody but us is shown keys.
    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        now: Time,
        ours: &[&str],
    ) -> Result<Identity, Refusal> {
        let mut is_expired = false;
        for name in [API_KEY, API_KEY_ALIAS] {
            let Some(sent) = headers.get(name) else {
                continue;
            };
            if self.is_operators(sent.as_bytes()) {
                return Ok(Identity::Operator(self.mark().unwrap_or_default()));
            }
            match self.keys.find(sent.as_bytes(), now) {
                Some(Found::Holder(holder)) => return Ok(Identity::Holder(holder)),
                Some(Found::Expired) => is_expired = true,
                Some(Found::Unknown) | None => {}
            }
        }
        // Where anybody may come, somebody whose key was revoked is not taken for anybody.
        if self.key.is_none() && !self.shows_ours(headers, ours) {
            return Ok(Identity::Anyone);
        }
        let (code, message) = if is_expired {
            let message = "the time of this API key is over: ask an admin for another one";
            (code::API_KEY_EXPIRED, message)
        } else if headers.contains_key(API_KEY) || headers.contains_key(API_KEY_ALIAS) {
            (
                code::INVALID_API_KEY,
                "this is not one of the server's API keys",
            )
        } else {
            let message = "an API key is needed: send it in the header OPEN-SANDBOX-API-KEY";
            (code::MISSING_API_KEY, message)
        };
        Err(Refusal::new(401, code, message))
    }

    /// Whether one of these headers has the shape of a key of this program, valid or not.
    pub(super) fn shows_ours(&self, headers: &HeaderMap, names: &[&str]) -> bool {
        let mut sent = names.iter().flat_map(|name| headers.get_all(*name));
        sent.any(|sent| Keys::has_shape(sent.as_bytes()))
    }

    /// Who has a key or the sandbox's token. A token for an id that never was opens nothing, and
    /// nobody can make one.
    pub(super) fn identify_inside(
        &self,
        headers: &HeaderMap,
        id: Option<&SandboxId>,
        now: Time,
    ) -> Result<Identity, Refusal> {
        let shows_token = || {
            let is_it = |name| Some(self.is_token(headers.get(name)?.as_bytes(), id?));
            [SANDBOX_TOKEN, SECURE_ACCESS]
                .map(is_it)
                .contains(&Some(true))
        };
        let unknown = match self.identify(headers, now, &[API_KEY]) {
            // The token alone would do, so a tenant's key beside it takes nothing away.
            Ok(identity) if identity.tenant().is_some() && shows_token() => {
                return Ok(Identity::Token(Beside::of(Some(identity))));
            }
            Ok(identity) => return Ok(identity),
            Err(unknown) if !shows_token() => unknown,
            Err(_) => return Ok(Identity::Token(Beside::default())),
        };
        if unknown.code() == code::API_KEY_EXPIRED {
            return Err(unknown);
        }
        Err(no_access())
    }

    /// Who has a key or the token of what guards the sandbox. Its other token opens nothing there.
    pub(super) fn identify_at_guard(
        &self,
        headers: &HeaderMap,
        id: Option<&SandboxId>,
        now: Time,
    ) -> Result<Identity, Refusal> {
        let sent = headers.get(EGRESS_AUTH).zip(id);
        let shows_token = sent.is_some_and(|(sent, id)| {
            let right = self.egress_token(id);
            same(sent.as_bytes(), right.as_bytes())
        });
        match self.identify(headers, now, &KEY_HEADERS) {
            // The token alone would do.
            Ok(identity) if identity.tenant().is_some() && shows_token => {
                Ok(Identity::Token(Beside::of(Some(identity))))
            }
            Err(_) if shows_token => Ok(Identity::Token(Beside::default())),
            known => known.map_err(|_| {
                let code = code::MISSING_OR_INVALID_SECURE_ACCESS;
                Refusal::new(401, code, "unauthorized")
            }),
        }
    }

    /// Refuses a wrong token in the header of OpenSandbox's gateway, whatever else came along.
    pub(super) fn check_secure_access(
        &self,
        headers: &HeaderMap,
        id: Option<&SandboxId>,
    ) -> Result<(), Refusal> {
        let is_good =
            |sent: &http::HeaderValue| id.is_some_and(|id| self.is_token(sent.as_bytes(), id));
        match headers.get_all(SECURE_ACCESS).iter().all(is_good) {
            true => Ok(()),
            false => Err(no_access()),
        }
    }

    fn is_token(&self, sent: &[u8], id: &SandboxId) -> bool {
        same(sent, self.token(id).as_bytes())
    }

    fn is_operators(&self, sent: &[u8]) -> bool {
        let key = self.key.as_ref();
        key.is_some_and(|key| same(sent, key.reveal().as_bytes()))
    }

    /// Takes our credentials out of headers that go on into a sandbox. The alias may be a key of
    /// the program inside; it goes only if it is ours.
    pub(super) fn strip(&self, headers: &mut HeaderMap) {
        headers.remove(API_KEY);
        headers.remove(SANDBOX_TOKEN);
        headers.remove(SECURE_ACCESS);
        let is_ours = |sent: &http::HeaderValue| {
            self.is_operators(sent.as_bytes()) || self.keys.knows(sent.as_bytes())
        };
        if headers.get_all(API_KEY_ALIAS).iter().any(is_ours) {
            headers.remove(API_KEY_ALIAS);
        }
    }
}

/// Compares in a time that does not tell how much is right.
fn same(sent: &[u8], right: &[u8]) -> bool {
    sent.ct_eq(right).into()
}

fn no_access() -> Refusal {
    let message = "this address needs the API key in OPEN-SANDBOX-API-KEY, or the sandbox's token \
                   as the endpoint's `headers` give it";
    Refusal::new(401, code::MISSING_OR_INVALID_SECURE_ACCESS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(end: char) -> SandboxId {
        format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5{end}")
            .parse()
            .unwrap()
    }

    fn now() -> Time {
        Time::from_micros(0).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn keys_and_tokens_open_what_they_should() {
        let gate = Gate::new(
            Some(Secret::new("right-key-right-key")),
            Secret::new("seed"),
            Keys::default(),
        );
        let token = gate.token(&id('0'));
        let other = gate.token(&id('1'));
        assert_eq!(token.len(), 64);
        for (sent, key_opens, token_opens) in [
            (headers(&[]), false, false),
            (headers(&[(API_KEY, "right-key-right-key")]), true, true),
            (
                headers(&[(API_KEY_ALIAS, "right-key-right-key")]),
                true,
                true,
            ),
            (headers(&[(API_KEY, "right-key-right-kez")]), false, false),
            (headers(&[(API_KEY, "right-key")]), false, false),
            (headers(&[(API_KEY, "")]), false, false),
            (headers(&[(SANDBOX_TOKEN, &token)]), false, true),
            (headers(&[(SANDBOX_TOKEN, &other)]), false, false),
            (
                headers(&[(SANDBOX_TOKEN, "right-key-right-key")]),
                false,
                false,
            ),
            (headers(&[(API_KEY, &token)]), false, false),
        ] {
            let now = now();
            assert_eq!(
                gate.identify(&sent, now, &KEY_HEADERS).is_ok(),
                key_opens,
                "{sent:?}"
            );
            assert_eq!(
                gate.identify_inside(&sent, Some(&id('0')), now).is_ok(),
                token_opens,
                "{sent:?}"
            );
        }
        assert!(
            gate.identify_inside(&headers(&[(SANDBOX_TOKEN, &token)]), None, now())
                .is_err()
        );
    }

    #[test]
    fn ours_is_stripped_and_theirs_stays() {
        let gate = Gate::new(
            Some(Secret::new("right-key-right-key")),
            Secret::new("seed"),
            Keys::default(),
        );
        let mut sent = headers(&[
            (API_KEY, "x"),
            (SANDBOX_TOKEN, "y"),
            (API_KEY_ALIAS, "their-own"),
            ("accept", "*/*"),
        ]);
        gate.strip(&mut sent);
        assert_eq!(
            sent,
            headers(&[(API_KEY_ALIAS, "their-own"), ("accept", "*/*")])
        );
        let mut sent = headers(&[(API_KEY_ALIAS, "right-key-right-key")]);
        gate.strip(&mut sent);
        assert!(sent.is_empty());
    }
}
