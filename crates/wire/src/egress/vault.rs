//! Pure. The credentials of a sandbox that never enter it, and where they go: the contract of
//! OpenSandbox's credential vault, and what the server tells the egress program of it.
//!
//! What a caller sends has no unknown field: a misspelt condition would send a secret further than
//! was meant.

mod calls;

use serde::{Deserialize, Serialize};

pub use calls::{
    AuthRow, BindingList, BindingRow, Changes, CredentialList, CredentialRow, NewVault, VaultPatch,
    VaultState,
};

use crate::secret::Secret;

/// A credential, as a caller gives it. Its value is never told again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// What bindings call it by.
    pub name: String,
    /// Where its value is.
    pub source: Source,
}

/// Where the value of a credential is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Source {
    /// Here.
    Inline {
        /// The value.
        value: Secret,
    },
}

/// Which requests get which credentials, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// What it is called.
    pub name: String,
    /// The requests that it is about.
    #[serde(rename = "match")]
    pub requests: Match,
    /// What they get.
    pub auth: Auth,
    /// Whether the values are taken out of what is answered to these requests. Ours; the contract
    /// has nothing of the kind.
    #[serde(default, skip_serializing_if = "is_false")]
    pub scrub_responses: bool,
}

/// Some requests: those that each of these fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// How they travel; `https` alone unless it is said.
    #[serde(default = "https")]
    pub schemes: Vec<Scheme>,
    /// Ports; 443 and 80, each with its scheme, and no others. Without any, as the schemes have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// Names, or `*.name` for all that is below one.
    pub hosts: Vec<String>,
    /// Methods; the usual five unless it is said.
    #[serde(default = "usual_methods")]
    pub methods: Vec<String>,
    /// Paths, where `*` stands for any text; all of them unless it is said.
    #[serde(default = "all_paths")]
    pub paths: Vec<String>,
}

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Encrypted.
    Https,
    /// Readable by all on the way.
    Http,
}

/// What a request gets. The credential of a header replaces what the sandbox sent under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Auth {
    /// `Authorization: Bearer VALUE`.
    Bearer {
        /// The credential.
        credential: String,
        /// What else is replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        substitutions: Vec<Substitution>,
    },
    /// `Authorization: Basic VALUE`, the value being base64 already, or `user:password`.
    Basic {
        /// The credential.
        credential: String,
        /// What else is replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        substitutions: Vec<Substitution>,
    },
    /// A header with the value alone.
    ApiKey {
        /// The header.
        name: String,
        /// The credential.
        credential: String,
        /// What else is replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        substitutions: Vec<Substitution>,
    },
    /// Several such headers.
    CustomHeaders {
        /// The headers; at least one.
        headers: Vec<Header>,
        /// What else is replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        substitutions: Vec<Substitution>,
    },
    /// No header; only what is replaced.
    Passthrough {
        /// What is replaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        substitutions: Vec<Substitution>,
    },
}

/// A header and the credential that is its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The header.
    pub name: String,
    /// The credential.
    pub credential: String,
}

/// A text of the sandbox's that leaves as the value of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Substitution {
    /// The credential.
    pub credential: String,
    /// The text.
    pub placeholder: String,
    /// Where it is looked for.
    #[serde(rename = "in")]
    pub places: Vec<Part>,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The path.
    Path,
    /// What follows the question mark.
    Query,
    /// The values of headers.
    Header,
    /// The body.
    Body,
}

/// Who signs the certificates that a sandbox is shown where its TLS is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// The name that it has in its certificate.
    pub name: String,
    /// Its certificate, as PEM.
    pub certificate: String,
    /// Its key, PKCS#8 as PEM.
    pub key: Secret,
}

/// The vault of a sandbox, as the server tells it to the egress program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vault {
    /// Who signs.
    pub authority: Authority,
    /// The credentials, with their values.
    pub credentials: Vec<Credential>,
    /// Where they go.
    pub bindings: Vec<Binding>,
}

impl Auth {
    /// Its type, as the contract spells it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::Basic { .. } => "basic",
            Self::ApiKey { .. } => "apiKey",
            Self::CustomHeaders { .. } => "customHeaders",
            Self::Passthrough { .. } => "passthrough",
        }
    }

    /// The credentials that it names, as often as it does.
    #[must_use]
    pub fn credentials(&self) -> Vec<&str> {
        let mut all: Vec<&str> = match self {
            Self::Bearer { credential, .. }
            | Self::Basic { credential, .. }
            | Self::ApiKey { credential, .. } => vec![credential],
            Self::CustomHeaders { headers, .. } => {
                headers.iter().map(|it| it.credential.as_str()).collect()
            }
            Self::Passthrough { .. } => Vec::new(),
        };
        all.extend(self.substitutions().iter().map(|it| it.credential.as_str()));
        all
    }

    /// What is replaced.
    #[must_use]
    pub fn substitutions(&self) -> &[Substitution] {
        match self {
            Self::Bearer { substitutions, .. }
            | Self::Basic { substitutions, .. }
            | Self::ApiKey { substitutions, .. }
            | Self::CustomHeaders { substitutions, .. }
            | Self::Passthrough { substitutions } => substitutions,
        }
    }
}

fn https() -> Vec<Scheme> {
    vec![Scheme::Https]
}

fn usual_methods() -> Vec<String> {
    ["GET", "POST", "PUT", "PATCH", "DELETE"]
        .map(str::to_owned)
        .into()
}

fn all_paths() -> Vec<String> {
    vec!["/*".to_owned()]
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn binding(change: impl FnOnce(&mut Value)) -> Result<Binding, serde_json::Error> {
        let mut value = json!({
            "name": "api",
            "match": {"hosts": ["api.example"]},
            "auth": {"type": "bearer", "credential": "key"},
        });
        change(&mut value);
        from_value(value)
    }

    #[test]
    fn what_is_not_said_is_narrow() {
        let requests = binding(|_| {}).unwrap().requests;
        assert_eq!(requests.schemes, [Scheme::Https]);
        assert_eq!(requests.ports, None);
        assert_eq!(requests.methods, ["GET", "POST", "PUT", "PATCH", "DELETE"]);
        assert_eq!(requests.paths, ["/*"]);
    }

    #[test]
    fn an_unknown_field_is_refused_wherever_it_stands() {
        for at in ["", "/match", "/auth"] {
            let spoilt = binding(|value| value.pointer_mut(at).unwrap()["hots"] = json!(["a"]));
            let error = spoilt.unwrap_err().to_string();
            assert!(error.contains("hots"), "{at}: {error}");
        }
        let substitution = json!({"credential": "key", "placeholder": "p", "in": ["body"], "x": 1});
        let spoilt = binding(|value| value["auth"]["substitutions"] = json!([substitution]));
        assert!(spoilt.is_err());
        let source = json!({"name": "key", "source": {"type": "inline", "value": "v", "path": ""}});
        assert!(from_value::<Credential>(source).is_err());
    }

    #[test]
    fn a_value_is_not_shown() {
        let credential: Credential =
            from_value(json!({"name": "key", "source": {"type": "inline", "value": "hunter2"}}))
                .unwrap();
        assert!(!format!("{credential:?}").contains("hunter2"));
    }
}
