//! Who may: the API's key, and the token of each sandbox.

use barchan_wire::header::{API_KEY, API_KEY_ALIAS, SANDBOX_TOKEN};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::code;
use barchan_wire::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::errors::Refusal;

/// Checks keys and tokens.
#[derive(Clone)]
pub(crate) struct Gate {
    /// `None` when the operator asks for no key.
    key: Option<Secret>,
    /// What tokens are made of; the same after a restart.
    seed: Secret,
}

impl Gate {
    pub(crate) fn new(key: Option<Secret>, seed: Secret) -> Self {
        Self { key, seed }
    }

    /// The same tokens behind another key.
    pub(crate) fn with_key(&self, key: Option<Secret>) -> Self {
        Self::new(key, self.seed.clone())
    }

    /// The token that opens one sandbox's ports.
    pub(super) fn token(&self, id: &SandboxId) -> String {
        // A key of any length is fine, so this cannot fail; a token nobody can know would follow.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.seed.reveal().as_bytes()) else {
            return uuid::Uuid::new_v4().to_string();
        };
        mac.update(id.as_str().as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// Lets pass who has the key.
    pub(super) fn check_key(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.has_key(headers) {
            return Ok(());
        }
        if headers.contains_key(API_KEY) || headers.contains_key(API_KEY_ALIAS) {
            return Err(Refusal::new(
                401,
                code::INVALID_API_KEY,
                "this is not the server's API key",
            ));
        }
        let message = "an API key is needed: send it in the header OPEN-SANDBOX-API-KEY";
        Err(Refusal::new(401, code::MISSING_API_KEY, message))
    }

    /// Lets pass who has the key or the sandbox's token. A token for an id that never was opens
    /// nothing, and nobody can make one.
    pub(super) fn check_token(
        &self,
        headers: &HeaderMap,
        id: Option<&SandboxId>,
    ) -> Result<(), Refusal> {
        if self.has_key(headers) {
            return Ok(());
        }
        let sent = headers.get(SANDBOX_TOKEN);
        if let (Some(sent), Some(id)) = (sent, id)
            && same(sent.as_bytes(), self.token(id).as_bytes())
        {
            return Ok(());
        }
        let message = "this address needs the API key in OPEN-SANDBOX-API-KEY, or the sandbox's \
                       token as the endpoint's `headers` give it";
        Err(Refusal::new(
            401,
            code::MISSING_OR_INVALID_SECURE_ACCESS,
            message,
        ))
    }

    fn has_key(&self, headers: &HeaderMap) -> bool {
        let Some(key) = &self.key else { return true };
        let is_key = |name: &str| {
            headers
                .get(name)
                .is_some_and(|sent| same(sent.as_bytes(), key.reveal().as_bytes()))
        };
        is_key(API_KEY) || is_key(API_KEY_ALIAS)
    }

    /// Takes our credentials out of headers that go on into a sandbox. The alias may be a key of
    /// the program inside; it goes only if it is ours.
    pub(super) fn strip(&self, headers: &mut HeaderMap) {
        headers.remove(API_KEY);
        headers.remove(SANDBOX_TOKEN);
        let is_ours = |sent: &http::HeaderValue| {
            self.key
                .as_ref()
                .is_some_and(|key| same(sent.as_bytes(), key.reveal().as_bytes()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(end: char) -> SandboxId {
        format!("0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5{end}")
            .parse()
            .unwrap()
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
            assert_eq!(gate.check_key(&sent).is_ok(), key_opens, "{sent:?}");
            assert_eq!(
                gate.check_token(&sent, Some(&id('0'))).is_ok(),
                token_opens,
                "{sent:?}"
            );
        }
        assert!(
            gate.check_token(&headers(&[(SANDBOX_TOKEN, &token)]), None)
                .is_err()
        );
    }

    #[test]
    fn ours_is_stripped_and_theirs_stays() {
        let gate = Gate::new(
            Some(Secret::new("right-key-right-key")),
            Secret::new("seed"),
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
