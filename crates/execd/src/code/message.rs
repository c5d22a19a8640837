//! Pure. The messages of the Jupyter protocol 5: what is asked of a kernel, and what it tells.
//!
//! Only what is used is read, and leniently: kernels differ in what they leave out.

use barchan_wire::execd::event::EventError;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::Sha256;

/// Parts identities from the signed rest.
const DELIMITER: &[u8] = b"<IDS|MSG>";
/// Version of the protocol.
const VERSION: &str = "5.3";

/// Signs what this end sends and checks what it receives.
pub(crate) struct Signer(Hmac<Sha256>);

impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Signer")
    }
}

impl Signer {
    /// A signer with this key, which may have any length.
    pub(crate) fn new(key: &str) -> Option<Self> {
        Hmac::new_from_slice(key.as_bytes()).ok().map(Self)
    }

    fn over(&self, parts: &[impl AsRef<[u8]>]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part.as_ref());
        }
        mac
    }

    fn checks(&self, signature: &[u8], parts: &[Bytes]) -> bool {
        let mut bytes = [0; 32];
        hex::decode_to_slice(signature, &mut bytes).is_ok()
            && self.over(parts).verify_slice(&bytes).is_ok()
    }
}

/// A request that asks a kernel for something.
#[derive(Debug)]
pub(crate) struct Request {
    /// Its id, which everything that it brings about repeats.
    pub(crate) id: String,
    /// The frames to send.
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Request {
    fn new(signer: &Signer, session: &str, number: u64, kind: &str, content: &Value) -> Self {
        let id = format!("{session}_{number}");
        let header = json!({
            "msg_id": id,
            "session": session,
            "username": "barchan",
            // Kernels parse it and do nothing with it, so it need not be asked of a clock.
            "date": "1970-01-01T00:00:00Z",
            "msg_type": kind,
            "version": VERSION,
        });
        let parts = [header, json!({}), json!({}), content.clone()];
        let parts = parts.map(|part| part.to_string().into_bytes());
        let signature = hex::encode(signer.over(&parts).finalize().into_bytes());
        let mut frames = vec![DELIMITER.to_vec(), signature.into_bytes()];
        frames.extend(parts);
        Self { id, frames }
    }

    /// Asks for the kernel's description, which tells that it is ready.
    pub(crate) fn info(signer: &Signer, session: &str, number: u64) -> Self {
        Self::new(signer, session, number, "kernel_info_request", &json!({}))
    }

    /// Asks it to stop what it runs.
    pub(crate) fn interrupt(signer: &Signer, session: &str, number: u64) -> Self {
        Self::new(signer, session, number, "interrupt_request", &json!({}))
    }

    /// Asks it to run a cell. Nobody is there to answer what the code may ask.
    pub(crate) fn execute(signer: &Signer, session: &str, number: u64, code: &str) -> Self {
        let content = json!({
            "code": code,
            "silent": false,
            "store_history": true,
            "user_expressions": {},
            "allow_stdin": false,
            "stop_on_error": true,
        });
        Self::new(signer, session, number, "execute_request", &content)
    }
}

/// A message of a kernel, its content still unread.
#[derive(Debug)]
pub(crate) struct Message {
    kind: String,
    /// Id of the request that brought it about.
    pub(crate) parent: String,
    content: Bytes,
}

#[derive(Deserialize)]
struct Header {
    msg_type: String,
}

#[derive(Default, Deserialize)]
struct Parent {
    #[serde(default)]
    msg_id: String,
}

/// Reads the frames of a message; `None` when it is none, or not signed with the kernel's key.
pub(crate) fn read(signer: &Signer, frames: &[Bytes]) -> Option<Message> {
    let at = frames.iter().position(|frame| *frame == DELIMITER)?;
    let [signature, signed @ ..] = frames.get(at + 1..)? else {
        return None;
    };
    let signed = signed.get(..4)?;
    if !signer.checks(signature, signed) {
        return None;
    }
    let [header, parent, _metadata, content] = signed else {
        return None;
    };
    let header: Header = serde_json::from_slice(header).ok()?;
    let parent: Parent = serde_json::from_slice(parent).unwrap_or_default();
    Some(Message {
        kind: header.msg_type,
        parent: parent.msg_id,
        content: content.clone(),
    })
}

/// What a message tells.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// The kernel has done with the request.
    Idle,
    /// Printed text.
    Text {
        /// Whether it was printed as an error.
        to_stderr: bool,
        /// The text.
        text: String,
    },
    /// A value, in several forms.
    Data {
        /// How many cells this kernel has run, where the value is a cell's own.
        count: Option<u64>,
        /// The forms by MIME type.
        forms: Map<String, Value>,
    },
    /// The code failed.
    Failed(EventError),
    /// The answer to the request itself: its failure, if it failed.
    Reply(Option<EventError>),
    /// Something that no caller needs.
    Nothing,
    /// A message that was too large to be read, in bytes.
    Oversized(u64),
    /// A message that could not be read.
    Unreadable,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    execution_state: String,
}

#[derive(Deserialize)]
struct Stream {
    #[serde(default)]
    name: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    data: Map<String, Value>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    status: String,
    #[serde(default)]
    ename: Option<String>,
    #[serde(default)]
    evalue: Option<String>,
    #[serde(default)]
    traceback: Option<Vec<String>>,
}

impl Reply {
    fn error(self) -> EventError {
        EventError {
            ename: self.ename.unwrap_or_default(),
            evalue: self.evalue.unwrap_or_default(),
            traceback: self.traceback.unwrap_or_default(),
        }
    }
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default)]
    implementation: String,
}

/// Kernels whose "idle" comes after all that a cell published, as the protocol wants it: those on
/// ipykernel, which has one thread for both. Others (Deno's, Spark's, Julia's) have been seen to
/// publish a result up to some milliseconds later.
const ORDERLY: [&str; 2] = ["ipython", "bash_kernel"];

impl Message {
    /// Whether this is the description of a kernel that says last that a cell has ended.
    pub(crate) fn is_of_orderly_kernel(&self) -> bool {
        let info: Info = serde_json::from_slice(&self.content).unwrap_or_default();
        self.kind == "kernel_info_reply" && ORDERLY.contains(&info.implementation.as_str())
    }

    /// Reads the content.
    pub(crate) fn told(&self) -> Told {
        self.parse().unwrap_or(Told::Unreadable)
    }

    fn parse(&self) -> serde_json::Result<Told> {
        let content = &self.content;
        Ok(match self.kind.as_str() {
            "status" => {
                let status: Status = serde_json::from_slice(content)?;
                if status.execution_state == "idle" {
                    Told::Idle
                } else {
                    Told::Nothing
                }
            }
            "stream" => {
                let stream: Stream = serde_json::from_slice(content)?;
                Told::Text {
                    to_stderr: stream.name == "stderr",
                    text: stream.text,
                }
            }
            "execute_result" | "display_data" | "update_display_data" => {
                let data: Data = serde_json::from_slice(content)?;
                let own = self.kind == "execute_result";
                Told::Data {
                    count: data.execution_count.filter(|_| own),
                    forms: data.data,
                }
            }
            "error" => Told::Failed(serde_json::from_slice::<Reply>(content)?.error()),
            "execute_reply" | "kernel_info_reply" | "interrupt_reply" => {
                let reply: Reply = serde_json::from_slice(content)?;
                let good = matches!(reply.status.as_str(), "ok" | "");
                Told::Reply((!good).then(|| reply.error()))
            }
            _ => Told::Nothing,
        })
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
