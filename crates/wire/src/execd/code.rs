//! Pure. Code contexts: kernels that keep their variables from one cell to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::null_as_default;

/// The language that stands for the shell, and for a request that names none.
pub const SHELL: &str = "command";

/// Body of `POST /code/context`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRequest {
    /// Language of the kernel.
    #[serde(default, deserialize_with = "null_as_default")]
    pub language: String,
    /// Working directory; `~` and `$NAME` are expanded. Made when it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment on top of the sandbox's own.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub envs: BTreeMap<String, String>,
}

/// A code context, as answers tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeContext {
    /// Its id, which is also that of whatever runs in it.
    pub id: String,
    /// Language of its kernel.
    pub language: String,
}

/// Which context code runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextChoice {
    /// A context; empty for the one that the language has by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub id: String,
    /// A language; empty for the shell, or for that of the context.
    #[serde(default, deserialize_with = "null_as_default")]
    pub language: String,
}

/// Body of `POST /code`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRequest {
    /// The cell.
    pub code: String,
    /// Where to run it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub context: ContextChoice,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_clients_write_them() {
        let choice = |id: &str, language: &str| ContextChoice {
            id: id.to_owned(),
            language: language.to_owned(),
        };
        for (text, context) in [
            (r#"{"code":"x"}"#, choice("", "")),
            (r#"{"code":"x","context":null}"#, choice("", "")),
            (
                r#"{"code":"x","context":{"id":null,"language":"go"}}"#,
                choice("", "go"),
            ),
            (
                r#"{"code":"x","context":{"id":"a","language":"go"}}"#,
                choice("a", "go"),
            ),
        ] {
            let code = "x".to_owned();
            let read: CodeRequest = serde_json::from_str(text).unwrap();
            assert_eq!(read, CodeRequest { code, context }, "{text}");
        }
        assert!(serde_json::from_str::<CodeRequest>("{}").is_err());
        let read: ContextRequest =
            serde_json::from_str(r#"{"language":"go","cwd":null,"envs":null}"#).unwrap();
        let language = "go".to_owned();
        assert_eq!(
            read,
            ContextRequest {
                language,
                ..ContextRequest::default()
            }
        );
    }
}
