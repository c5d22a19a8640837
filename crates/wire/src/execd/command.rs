//! Pure. Commands: the request that starts one and the answer about its state.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::moment;

/// Body of `POST /command`. Exactly one of `command` and `argv` is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandRequest {
    /// A script for the sandbox's shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A program and its arguments, run without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Working directory; `~` and `$NAME` are expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Answer at once and let the command run on.
    #[serde(default, deserialize_with = "null_as_default")]
    pub background: bool,
    /// Milliseconds until the whole tree is killed; absent or 0: no limit. Fractions are allowed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "whole_if_possible"
    )]
    pub timeout: Option<f64>,
    /// User to run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group to run as; needs `uid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Environment on top of the sandbox's own.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub envs: BTreeMap<String, String>,
}

/// Answer of `GET /command/status/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStatus {
    /// The id that the `init` event named.
    pub id: String,
    /// The command as it was given; a very long one is cut.
    pub content: String,
    /// Whether its process has not ended yet.
    pub running: bool,
    /// Exit code once it has ended; 128 + n after signal n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was started.
    #[serde(with = "moment::rfc3339")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "moment::rfc3339_option"
    )]
    pub finished_at: Option<Timestamp>,
    /// What it used, once it has ended. An extension of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the kernel seems to have killed it because memory ran out. An extension of ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
}

/// What a command used: its process and all descendants that were waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in programs, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// Most memory that any one of the processes held, in bytes.
    pub max_rss_bytes: u64,
    /// From start to end, in microseconds.
    pub wall_us: u64,
}

/// Clients of other languages write `null` for what they leave out.
pub(super) fn null_as_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Writes 1500, not 1500.0: other daemons read an integer here.
fn whole_if_possible<S: Serializer>(value: &Option<f64>, out: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            out.serialize_i64(*number as i64)
        }
        Some(number) => out.serialize_f64(*number),
        None => out.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_clients_write_them() {
        let base = CommandRequest::default();
        for (text, wanted) in [
            (
                r#"{"command":"ls","cwd":null,"background":null,"envs":null,"uid":null}"#,
                CommandRequest {
                    command: Some("ls".to_owned()),
                    ..base.clone()
                },
            ),
            (
                r#"{"argv":["ls"],"timeout":1500.5,"other":1}"#,
                CommandRequest {
                    argv: Some(vec!["ls".to_owned()]),
                    timeout: Some(1500.5),
                    ..base
                },
            ),
        ] {
            assert_eq!(
                serde_json::from_str::<CommandRequest>(text).unwrap(),
                wanted
            );
        }
    }

    #[test]
    fn whole_timeouts_are_written_as_integers() {
        for (timeout, wanted) in [(1500.0, "1500"), (0.5, "0.5")] {
            let request = CommandRequest {
                timeout: Some(timeout),
                ..CommandRequest::default()
            };
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(
                text,
                format!(r#"{{"background":false,"timeout":{wanted}}}"#)
            );
        }
    }
}
