//! Pure. `/x/exec`, an extension of ours: a command as a stream of binary frames.
//!
//! A frame is a head of 13 bytes and a payload: one byte for the kind, the offset in the command's
//! output as a big-endian u64, the payload's length as a big-endian u32. Offsets count the bytes of
//! both streams in the one order in which they were read.

use serde::{Deserialize, Serialize};

use super::command::CommandRequest;

/// Media type of the stream.
pub const MEDIA_TYPE: &str = "application/vnd.barchan.exec";
/// Bytes in front of every payload.
pub const HEAD_BYTES: usize = 13;
/// Longest payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame of every stream: [`Started`] as JSON.
    Started,
    /// Bytes of standard output; the offset is that of the first one.
    Stdout,
    /// Bytes of standard error; likewise.
    Stderr,
    /// Output up to this offset is no longer kept.
    Gap,
    /// A sign of life; empty.
    Alive,
    /// What the command used: a [`Usage`](super::command::Usage) as JSON.
    Usage,
    /// The command's last frame: [`Ended`] as JSON.
    Ended,
    /// From the server, behind the command's last frame, where its writings were to be sealed: the
    /// [`Layer`](crate::lifecycle::Layer) as JSON. The offset says nothing.
    Layer,
    /// In its place: why there is none, as an [`ErrorBody`](crate::lifecycle::ErrorBody) in JSON.
    LayerError,
    /// A kind this version does not know; to be passed over.
    Unknown(u8),
}

impl FrameKind {
    /// As it is written.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Started => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Gap => 3,
            Self::Alive => 4,
            Self::Usage => 5,
            Self::Ended => 6,
            Self::Layer => 7,
            Self::LayerError => 8,
            Self::Unknown(byte) => byte,
        }
    }

    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Started,
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Gap,
            4 => Self::Alive,
            5 => Self::Usage,
            6 => Self::Ended,
            7 => Self::Layer,
            8 => Self::LayerError,
            other => Self::Unknown(other),
        }
    }
}

/// What stands in front of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the payload is.
    pub kind: FrameKind,
    /// Where in the output.
    pub offset: u64,
    /// Length of the payload, in bytes.
    pub bytes: usize,
}

impl Head {
    /// As it is written; `None` for a payload beyond [`PAYLOAD_BYTES_MAX`].
    #[must_use]
    pub fn write(self) -> Option<[u8; HEAD_BYTES]> {
        let length = u32::try_from(self.bytes).ok()?;
        if self.bytes > PAYLOAD_BYTES_MAX {
            return None;
        }
        let [a, b, c, d, e, f, g, h] = self.offset.to_be_bytes();
        let [i, j, k, l] = length.to_be_bytes();
        Some([self.kind.byte(), a, b, c, d, e, f, g, h, i, j, k, l])
    }

    /// Reads a head; `None` when it announces a payload beyond [`PAYLOAD_BYTES_MAX`].
    #[must_use]
    pub fn read(head: [u8; HEAD_BYTES]) -> Option<Self> {
        let [kind, a, b, c, d, e, f, g, h, i, j, k, l] = head;
        let bytes = u32::from_be_bytes([i, j, k, l]) as usize;
        (bytes <= PAYLOAD_BYTES_MAX).then(|| Self {
            kind: FrameKind::of(kind),
            offset: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            bytes,
        })
    }
}

/// Body of `POST /x/exec`: a command, and what only this route offers. `background` is `detach`
/// here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// What to run, where and as whom.
    #[serde(flatten)]
    pub command: CommandRequest,
    /// The command reads what is sent to `/x/exec/{id}/stdin`; else its input is at its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// Run on when nobody reads its output any more; else it is killed half a minute later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
}

/// Payload of [`FrameKind::Started`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The command's id, for every other route of commands too.
    pub id: String,
}

/// Payload of [`FrameKind::Ended`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code; 128 + n after signal n.
    pub exit_code: i32,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the kernel seems to have killed it because memory ran out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
}

/// Answer of `POST` and `GET /x/exec/{id}/stdin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinState {
    /// How many bytes of input the command was given in all.
    pub accepted_bytes: u64,
    /// Whether it takes more.
    pub open: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_are_written() {
        for (kind, offset, bytes, wanted) in [
            (
                FrameKind::Started,
                0,
                2,
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
            ),
            (
                FrameKind::Stderr,
                258,
                1 << 20,
                [2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 16, 0, 0],
            ),
            (
                FrameKind::Unknown(200),
                u64::MAX,
                0,
                [200, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0],
            ),
        ] {
            let head = Head {
                kind,
                offset,
                bytes,
            };
            assert_eq!(head.write(), Some(wanted));
            assert_eq!(Head::read(wanted), Some(head));
        }
        for byte in 0..=u8::MAX {
            assert_eq!(FrameKind::of(byte).byte(), byte);
        }
    }

    #[test]
    fn a_payload_beyond_the_limit_is_refused() {
        let head = Head {
            kind: FrameKind::Stdout,
            offset: 0,
            bytes: PAYLOAD_BYTES_MAX + 1,
        };
        assert_eq!(head.write(), None);
        assert_eq!(Head::read([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 1]), None);
    }

    #[test]
    fn a_request_is_a_command_and_more() {
        let text = r#"{"argv":["cat"],"cwd":"/","stdin":true,"envs":{"A":"1"}}"#;
        let request: ExecRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.command.argv, Some(vec!["cat".to_owned()]));
        assert!(request.stdin && !request.detach);
        let text = serde_json::to_string(&request).unwrap();
        let again: ExecRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(again, request);
    }
}
