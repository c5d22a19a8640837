//! Pure. How a sandbox's end is told.

use barchan_runtime::EndReason;
use serde::{Deserialize, Serialize};

/// The end of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Whether it ended as it should.
    pub kind: EndKind,
    /// Why, in one word for programs.
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
                reason: "CONTAINER_EXITED".to_owned(),
                message: "The entrypoint exited with code 0.".to_owned(),
            },
            EndReason::Exit(code) => Self::failure(
                "CONTAINER_EXITED_ERROR",
                &format!("The entrypoint exited with code {code}{last}"),
            ),
            EndReason::Oom => Self::failure(
                "oom",
                &format!("The sandbox used more memory than its limit and was killed{last}"),
            ),
            EndReason::DaemonLost => Self::failure(
                "daemon_lost",
                "The sandbox's daemon was killed or stopped answering, and the sandbox with it.",
            ),
            EndReason::LauncherLost => Self::failure(
                "launcher_lost",
                "The host's launcher died, and all its sandboxes with it.",
            ),
        }
    }

    /// The end of a create that a killed server never answered.
    pub(super) fn interrupted() -> Self {
        Self::failure(
            "create_interrupted",
            "The server stopped while it made the sandbox.",
        )
    }

    /// The end of a sandbox that disappeared.
    pub(super) fn lost() -> Self {
        Self::failure(
            "lost",
            "The sandbox disappeared from the host without being deleted here.",
        )
    }

    fn failure(reason: &str, message: &str) -> Self {
        Self {
            kind: EndKind::Failure,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }
}
