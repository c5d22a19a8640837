//! Pure. What callers send about a vault, and what they are told of one: never a value.

use serde::{Deserialize, Serialize};

use super::{Auth, Binding, Credential, Match};

/// A vault that a sandbox is to get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewVault {
    /// Its credentials.
    #[serde(default)]
    pub credentials: Vec<Credential>,
    /// Where they go.
    #[serde(default)]
    pub bindings: Vec<Binding>,
}

/// A change of a vault, made whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultPatch {
    /// The revision that the caller has seen; without it, whichever there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_revision: Option<u64>,
    /// What becomes of credentials.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Changes<Credential>>,
    /// What becomes of bindings.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub bindings: Option<Changes<Binding>>,
}

/// What becomes of the things of one kind. What goes makes room first, and what is new comes last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes<T> {
    /// New ones.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub add: Option<Vec<T>>,
    /// Others in the place of those of their names.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub replace: Option<Vec<T>>,
    /// Names of those that go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<Vec<String>>,
}

/// A vault, as callers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultState {
    /// How often it was set, from 1.
    pub revision: u64,
    /// Its credentials.
    pub credentials: Vec<CredentialRow>,
    /// Where they go.
    pub bindings: Vec<BindingRow>,
}

/// Its credentials alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialList {
    /// As in [`VaultState`].
    pub revision: u64,
    /// As in [`VaultState`].
    pub credentials: Vec<CredentialRow>,
}

/// Its bindings alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingList {
    /// As in [`VaultState`].
    pub revision: u64,
    /// As in [`VaultState`].
    pub bindings: Vec<BindingRow>,
}

/// What is told of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialRow {
    /// What bindings call it by.
    pub name: String,
    /// Where its value came from: `inline`.
    pub source_type: String,
    /// The vault's revision that set it.
    pub revision: u64,
}

/// What is told of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRow {
    /// What it is called.
    pub name: String,
    /// The vault's revision that set it.
    pub revision: u64,
    /// The requests that it is about.
    #[serde(rename = "match")]
    pub requests: Match,
    /// What they get.
    pub auth: AuthRow,
}

/// What is told of how a request gets its credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRow {
    /// The type, as the contract spells it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The header of an `apiKey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl From<&Auth> for AuthRow {
    fn from(auth: &Auth) -> Self {
        let name = match auth {
            Auth::ApiKey { name, .. } => Some(name.clone()),
            _ => None,
        };
        Self {
            kind: auth.kind().to_owned(),
            name,
        }
    }
}

/// Without asking anything of the type, as a derive would.
const fn none<T>() -> Option<T> {
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_patch_reads_what_clients_send_and_nothing_else() {
        let key = json!({"name": "key", "source": {"type": "inline", "value": "v"}});
        for (sent, is_fine) in [
            (json!({}), true),
            (json!({"expectedRevision": 3}), true),
            (json!({"expectedRevision": null, "credentials": null}), true),
            (
                json!({"credentials": {"add": [key], "delete": ["b"]}}),
                true,
            ),
            (json!({"credentials": {"replace": null}}), true),
            (json!({"bindings": {"delete": ["x"]}}), true),
            (json!({"expected_revision": 3}), false),
            (json!({"expectedRevision": -1}), false),
            (json!({"credentials": {"remove": ["b"]}}), false),
            (json!({"credentials": [key]}), false),
        ] {
            let read = from_value::<VaultPatch>(sent.clone());
            assert_eq!(read.is_ok(), is_fine, "{sent}");
        }
        let unknown = json!({"credentials": [], "bindings": [], "binding": []});
        assert!(from_value::<NewVault>(unknown).is_err());
    }

    #[test]
    fn what_is_told_has_the_names_of_the_contract() {
        let auth = Auth::ApiKey {
            name: "X-Key".to_owned(),
            credential: "key".to_owned(),
            substitutions: Vec::new(),
        };
        let told = serde_json::to_value(AuthRow::from(&auth)).unwrap();
        assert_eq!(told, json!({"type": "apiKey", "name": "X-Key"}));
        let row = CredentialRow {
            name: "key".to_owned(),
            source_type: "inline".to_owned(),
            revision: 2,
        };
        let told: Value = serde_json::to_value(row).unwrap();
        assert_eq!(
            told,
            json!({"name": "key", "sourceType": "inline", "revision": 2})
        );
    }
}
