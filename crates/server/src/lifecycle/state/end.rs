//! Pure. How a sandbox's end is told.

use std::time::Duration;

use barchan_runtime::EndReason;
use serde::{Deserialize, Serialize};

/// Why a sandbox ended, for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its entrypoint exited.
    #[default]
    Exit,
    /// It used more memory than its limit.
    Oom,
    /// Its daemon was killed.
    DaemonLost,
    /// Its daemon stopped answering.
    DaemonUnresponsive,
    /// The launcher died.
    LauncherLost,
    /// The host was started anew.
    HostRestart,
    /// It disappeared.
    Lost,
    /// The server was killed while it made the sandbox.
    CreateInterrupted,
    /// It could not be made.
    CreateFailed,
    /// Its time to live was over.
    Ttl,
    /// Nobody used it for longer than its idle time-out.
    Idle,
    /// Somebody deleted it.
    Killed,
}

impl Cause {
    /// All of them, in their order.
    pub const ALL: [Self; 12] = [
        Self::Exit,
        Self::Oom,
        Self::DaemonLost,
        Self::DaemonUnresponsive,
        Self::LauncherLost,
        Self::HostRestart,
        Self::Lost,
        Self::CreateInterrupted,
        Self::CreateFailed,
        Self::Ttl,
        Self::Idle,
        Self::Killed,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Oom => "oom",
            Self::DaemonLost => "daemon_lost",
            Self::DaemonUnresponsive => "daemon_unresponsive",
            Self::LauncherLost => "launcher_lost",
            Self::HostRestart => "host_restart",
            Self::Lost => "lost",
            Self::CreateInterrupted => "create_interrupted",
            Self::CreateFailed => "create_failed",
            Self::Ttl => "ttl",
            Self::Idle => "idle",
            Self::Killed => "killed",
        }
    }
}

/// The end of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Whether it ended as it should.
    pub kind: EndKind,
    /// Why, for programs.
    #[serde(default)]
    pub cause: Cause,
    /// Why, in the one word that the wire has for it: the cause's but for exits.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// Whether a sandbox ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndKind {
    /// Its entrypoint said success.
    Success,
    /// Anything else.
    Failure,
}

impl End {
    /// An end that the runtime saw, with the last lines of the entrypoint's output.
    pub(super) fn seen(reason: &EndReason, tail: &str) -> Self {
        let last = if tail.is_empty() {
            String::new()
        } else {
            format!("; its last output: {tail}")
        };
        match reason {
            EndReason::Exit(0) => Self {
                kind: EndKind::Success,
                cause: Cause::Exit,
                reason: "CONTAINER_EXITED".to_owned(),
                message: "The entrypoint exited with code 0.".to_owned(),
            },
            EndReason::Exit(code) => Self {
                kind: EndKind::Failure,
                cause: Cause::Exit,
                reason: "CONTAINER_EXITED_ERROR".to_owned(),
                message: format!("The entrypoint exited with code {code}{last}"),
            },
            EndReason::Oom => Self::failure(
                Cause::Oom,
                &format!("The sandbox used more memory than its limit and was killed{last}"),
            ),
            EndReason::DaemonLost => Self::failure(
                Cause::DaemonLost,
                "The sandbox's daemon was killed, and the sandbox with it.",
            ),
            EndReason::DaemonUnresponsive => Self::failure(
                Cause::DaemonUnresponsive,
                "The sandbox's daemon stopped answering for some seconds, so the sandbox was \
                 ended: a program inside starved it, stopped it or took its descriptors.",
            ),
            EndReason::LauncherLost => Self::failure(
                Cause::LauncherLost,
                "The host's launcher died, and all its sandboxes with it.",
            ),
        }
    }

    /// The end of a create that a killed server never answered.
    pub(super) fn interrupted() -> Self {
        let message = "The server stopped while it made the sandbox.";
        Self::failure(Cause::CreateInterrupted, message)
    }

    /// The end of a create that failed.
    pub(super) fn not_started() -> Self {
        Self::failure(Cause::CreateFailed, "The sandbox could not be made.")
    }

    /// The end of a sandbox that disappeared.
    pub(super) fn lost() -> Self {
        let message = "The sandbox disappeared from the host without being deleted here.";
        Self::failure(Cause::Lost, message)
    }

    /// The end of a sandbox whose host went down under it.
    pub(super) fn host_restarted() -> Self {
        let message = "The host was started anew, and its sandboxes do not survive that.";
        Self::failure(Cause::HostRestart, message)
    }

    /// The end of a sandbox whose time to live is over.
    pub(super) fn expired() -> Self {
        Self::success(Cause::Ttl, "The sandbox's time to live was over.")
    }

    /// The end of a sandbox that nobody used.
    pub(super) fn idle(limit: Duration) -> Self {
        let seconds = limit.as_secs();
        let message = format!("Nobody used the sandbox and nothing in it worked for {seconds} s.");
        Self::success(Cause::Idle, &message)
    }

    /// The end of a sandbox that somebody deleted.
    pub(super) fn killed() -> Self {
        Self::success(Cause::Killed, "The sandbox was deleted.")
    }

    fn success(cause: Cause, message: &str) -> Self {
        Self {
            kind: EndKind::Success,
            ..Self::failure(cause, message)
        }
    }

    fn failure(cause: Cause, message: &str) -> Self {
        Self {
            kind: EndKind::Failure,
            cause,
            reason: cause.as_str().to_owned(),
            message: message.to_owned(),
        }
    }
}
