//! Pure. Sessions: one living shell that takes one run after another.

use serde::{Deserialize, Serialize};

/// Body of `POST /session`; it may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// Where the shell starts; made when it is missing. `~` and `$NAME` are expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Answer of `POST /session` and of `POST /pty`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAnswer {
    /// The new session's id.
    pub session_id: String,
}

/// Body of `POST /session/{id}/run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// A script for the session's shell.
    #[serde(default)]
    pub command: String,
    /// Where the shell goes first, and stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Milliseconds until the run is ended; absent or 0: a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_clients_write_them() {
        for (text, wanted) in [
            (
                r#"{"command":"ls","cwd":null,"timeout":null}"#,
                RunRequest {
                    command: "ls".to_owned(),
                    ..RunRequest::default()
                },
            ),
            (
                r#"{"command":"ls","cwd":"/a","timeout":1500.0,"other":1}"#,
                RunRequest {
                    command: "ls".to_owned(),
                    cwd: Some("/a".to_owned()),
                    timeout: Some(1500.0),
                },
            ),
        ] {
            assert_eq!(serde_json::from_str::<RunRequest>(text).unwrap(), wanted);
        }
        let bare: SessionRequest = serde_json::from_str("{}").unwrap();
        assert_eq!(bare, SessionRequest::default());
    }
}
