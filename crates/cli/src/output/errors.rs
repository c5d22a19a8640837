//! Pure. Errors in words of the command line: a server speaks of headers, which nobody types.

use std::error::Error;

use barchan_client::ClientError;
use barchan_wire::lifecycle::code;

const WAYS: &str = "`--api-key`, BARCHAN_API_KEY or `api_key` in client.toml";

/// The error and its causes, each once.
pub(super) fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for cause in error.chain().map(plainly) {
        // Many say what they came from, and what helps behind it.
        if !last.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{cause}");
        }
        last = cause;
    }
    text
}

fn plainly(error: &(dyn Error + 'static)) -> String {
    let Some(ClientError::Api(told)) = error.downcast_ref() else {
        return error.to_string();
    };
    let words = match told.code.as_str() {
        code::MISSING_API_KEY => format!("this server asks for an API key: give it with {WAYS}"),
        code::INVALID_API_KEY => format!("this server does not know the API key of {WAYS}"),
        code::API_KEY_EXPIRED => format!(
            "the time of the API key is over: ask an admin for another one, and give it with {WAYS}"
        ),
        _ => return error.to_string(),
    };
    format!("{words} ({}, HTTP {})", told.code, told.status)
}

#[cfg(test)]
mod tests {
    use barchan_client::ApiError;

    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::Error::msg("disk full")
            .context("cannot write a")
            .context("copy: disk full");
        assert_eq!(
            sentence(&error),
            "copy: disk full: cannot write a: disk full"
        );
        let twice = anyhow::Error::msg("disk full").context("cannot write a: disk full");
        assert_eq!(sentence(&twice), "cannot write a: disk full");
        let helpful =
            anyhow::Error::msg("disk full").context("cannot write a: disk full; make room");
        assert_eq!(sentence(&helpful), "cannot write a: disk full; make room");
    }

    #[test]
    fn keys_are_asked_for_by_what_can_be_typed() {
        for (code, expected) in [
            ("MISSING_API_KEY", "list: this server asks for an API key"),
            ("INVALID_API_KEY", "list: this server does not know"),
            ("API_KEY_EXPIRED", "list: the time of the API key is over"),
            ("OTHER", "list: the header X (OTHER, HTTP 401)"),
        ] {
            let error = ClientError::Api(ApiError {
                status: 401,
                code: code.to_owned(),
                message: "the header X".to_owned(),
            });
            let told = sentence(&anyhow::Error::new(error).context("list"));
            assert!(told.starts_with(expected), "{told}");
            let is_known = code != "OTHER";
            assert_eq!(told.contains("--api-key"), is_known, "{told}");
        }
    }
}
