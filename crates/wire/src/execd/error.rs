//! Pure. The error body of the in-sandbox daemon.

use serde::{Deserialize, Serialize};

/// What went wrong, from the closed list that clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The body or a parameter does not say what the route needs.
    InvalidRequestBody,
    /// A query parameter is missing.
    MissingQuery,
    /// The work itself failed.
    RuntimeError,
    /// The path names something that this route does not work on.
    InvalidFile,
    /// The content of an upload is broken.
    InvalidFileContent,
    /// The metadata of an upload is broken.
    InvalidFileMetadata,
    /// There is no such file.
    FileNotFound,
    /// There is no such session or code context.
    ContextNotFound,
    /// Another caller is connected to the terminal.
    AlreadyConnected,
    /// This daemon does not offer that.
    NotSupported,
    /// Anything else.
    #[serde(other)]
    Unknown,
}

/// Body of every answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// For programs.
    pub code: ErrorCode,
    /// For people: what was tried, on what, and what to do next.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spelled_as_clients_know_them() {
        let body = ErrorBody {
            code: ErrorCode::InvalidFileMetadata,
            message: "m".to_owned(),
        };
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(text, r#"{"code":"INVALID_FILE_METADATA","message":"m"}"#);
        let newer = r#"{"code":"BRAND_NEW","message":""}"#;
        let read: ErrorBody = serde_json::from_str(newer).unwrap();
        assert_eq!(read.code, ErrorCode::Unknown);
    }
}
