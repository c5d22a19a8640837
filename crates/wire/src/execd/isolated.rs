//! Pure. Isolated sessions: what is asked for, what is told about them, their runs and changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::command::null_as_default;
use super::moment;

/// How much a session hides from what runs in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// No variables that look like secrets, and no network unless asked for.
    #[default]
    Strict,
    /// The sandbox's variables and network.
    Balanced,
}

/// How a tree is mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The tree itself, to write to.
    Rw,
    /// A view whose changes stay with the session.
    #[default]
    Overlay,
    /// The tree itself, to look at.
    Ro,
}

/// A tree of the sandbox under its own path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Absolute path.
    pub path: String,
    /// How; an overlay when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Of an overlay: whether it can be compared and committed. True when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
}

/// A tree of the sandbox under another path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path in the sandbox.
    pub source: String,
    /// Absolute path in the session; the same when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest: Option<String>,
    /// Whether it can only be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readonly: Option<bool>,
}

/// Whether a list names what passes or what does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PassMode {
    /// Only what it names.
    Allow,
    /// All but what it names.
    #[default]
    Deny,
}

/// Which variables of the sandbox a session sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvPassthrough {
    /// What the list means.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mode: PassMode,
    /// Names; `*` stands for any characters.
    #[serde(default, deserialize_with = "null_as_default")]
    pub keys: Vec<String>,
}

/// How the session's user comes about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UidMode {
    /// An id of the sandbox's.
    #[default]
    Setpriv,
    /// An id of a user namespace's own.
    Userns,
}

/// What a session is made of: body of `POST /v1/isolated/session`, repeated in answers about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// What it hides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The tree it works in; another way to write the first of `overlays`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Overlay>,
    /// Trees under their own paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlays: Option<Vec<Overlay>>,
    /// Further paths it may write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_writable: Option<Vec<String>>,
    /// Trees under other paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binds: Option<Vec<Bind>>,
    /// Whether it has the sandbox's network; the profile decides when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_net: Option<bool>,
    /// Which variables it sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_passthrough: Option<EnvPassthrough>,
    /// User of its runs; the daemon's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// How that user comes about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid_mode: Option<UidMode>,
    /// Seconds without use after which it is destroyed; 0: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_seconds: Option<u64>,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// It can run something.
    Active,
    /// Its processes were killed; its changes can still be told and committed.
    Dead,
}

/// Answer of `POST /v1/isolated/session`, of `GET` for one session, and an entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    /// Its id, a UUID.
    pub session_id: String,
    /// Its state.
    pub status: SessionStatus,
    /// When it was made.
    #[serde(with = "moment::rfc3339")]
    pub created_at: Timestamp,
    /// When a run began last, or when it was made.
    #[serde(with = "moment::rfc3339")]
    pub last_run_at: Timestamp,
    /// Seconds until it is destroyed for want of use; absent when it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_remaining_seconds: Option<u64>,
    /// What it is made of; left out of the list.
    #[serde(flatten)]
    pub spec: SessionSpec,
}

/// Answer of `GET /v1/isolated/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// Oldest first.
    pub sessions: Vec<SessionState>,
}

/// Body of `POST /v1/isolated/session/{id}/run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// A script for the session's shell.
    pub code: String,
    /// Variables that are exported before.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub envs: BTreeMap<String, String>,
    /// Seconds until it is killed; absent or 0: no limit. A background run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Answer at once and let it run on.
    #[serde(default, deserialize_with = "null_as_default")]
    pub background: bool,
}

/// Answer to a background run, and of `GET /v1/isolated/session/{id}/runs/{run}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// The session it runs in.
    pub session_id: String,
    /// Its id, a UUID.
    pub run_id: String,
    /// Whether it has not ended yet.
    pub running: bool,
    /// When it began.
    #[serde(with = "moment::rfc3339")]
    pub started_at: Timestamp,
    /// Its exit code once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended, where that was not its own doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it ended.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "moment::rfc3339_option"
    )]
    pub finished_at: Option<Timestamp>,
}

/// Whether one wall of a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// `active`, `disabled`, `degraded` or `unsupported`.
    pub state: String,
    /// Why it is not active; empty when it is.
    #[serde(default)]
    pub message: String,
}

/// The walls of this sandbox, those around ordinary commands included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardening {
    /// `pid1`, `subreaper` or `none`.
    pub init_mode: String,
    /// Whether the kernel keeps signals of the sandbox from the daemon.
    pub signal_shield: bool,
    /// Fewer capabilities.
    pub cap_drop: Layer,
    /// A filter of system calls.
    pub seccomp: Layer,
    /// Landlock.
    pub landlock: Layer,
    /// Observation by eBPF.
    pub ebpf: Layer,
}

/// Answer of `GET /v1/isolated/capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Whether a session can be made here.
    pub available: bool,
    /// What makes them.
    pub isolator: String,
    /// Its version.
    pub version: String,
    /// What is missing, and what helps; empty when nothing is.
    pub message: String,
    /// Whether [`UidMode::Setpriv`] works.
    pub setpriv_available: bool,
    /// Whether [`UidMode::Userns`] works.
    pub userns_available: bool,
    /// Whether an overlay's changes can be committed.
    pub commit_supported: bool,
    /// Whether an overlay's changes can be listed.
    pub diff_supported: bool,
    /// The walls.
    pub hardening: Hardening,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// It is another now: content, type, mode or owner.
    Changed,
    /// It is gone, with all below it.
    Deleted,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Absolute path, as the session and the sandbox see it.
    pub path: String,
    /// What happened.
    pub change: ChangeKind,
    /// `file`, `directory`, `symlink` or `other`: what it is now, or what it was.
    #[serde(rename = "type")]
    pub kind: super::file::FileKind,
    /// Size in bytes of what it is now; 0 for what is gone.
    pub size: u64,
}

/// Answer of `GET /v1/isolated/session/{id}/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// The session.
    pub session_id: String,
    /// In the order of a walk; a folder before what is in it.
    pub changes: Vec<Change>,
}

/// Answer of `POST /v1/isolated/session/{id}/commit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The session.
    pub session_id: String,
    /// Paths that were written or removed.
    pub applied: u64,
    /// Paths that cannot be carried over, such as sockets.
    pub skipped: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_clients_write_them() {
        let text = r#"{"workspace":{"path":"/w","mode":"rw"},"overlays":null,"uid":null,
            "env_passthrough":{"mode":"allow","keys":["A"]},"idle_timeout_seconds":0,"new":1}"#;
        let spec: SessionSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.workspace.as_ref().unwrap().mode, Some(Mode::Rw));
        assert_eq!(spec.env_passthrough.as_ref().unwrap().keys, ["A"]);
        assert_eq!(spec.idle_timeout_seconds, Some(0));
        let told = serde_json::to_value(&spec).unwrap();
        assert_eq!(told["idle_timeout_seconds"], 0);
        assert!(told.get("overlays").is_none());
        for bad in [
            r#"{"profile":"lax"}"#,
            r#"{"uid":-1}"#,
            r#"{"workspace":{"mode":"rw"}}"#,
        ] {
            assert!(serde_json::from_str::<SessionSpec>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_state_repeats_what_a_session_is_made_of() {
        let state = SessionState {
            session_id: "s".to_owned(),
            status: SessionStatus::Active,
            created_at: Timestamp::UNIX_EPOCH,
            last_run_at: Timestamp::UNIX_EPOCH,
            idle_remaining_seconds: None,
            spec: SessionSpec {
                share_net: Some(false),
                ..SessionSpec::default()
            },
        };
        let told = serde_json::to_value(&state).unwrap();
        assert_eq!(told["status"], "active");
        assert_eq!(told["share_net"], false);
        assert_eq!(serde_json::from_value::<SessionState>(told).unwrap(), state);
    }
}
