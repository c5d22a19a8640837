//! How the in-sandbox daemon is started: what it inherits, and where.

use std::collections::BTreeMap;
use std::ffi::CStr;

use serde::{Deserialize, Serialize};

/// The argument that tells the daemon's program that it is a spare: see [`crate::standby`].
pub const STAND_BY: &CStr = c"--stand-by";
/// The argument that tells the daemon's program that it is PID 1 of an isolated session: see
/// [`crate::session`].
pub const SESSION: &CStr = c"--session";
/// The channel to the launcher: orders come in, "ready" and failed steps go out.
pub const CONTROL_FD: i32 = 3;
/// Where a limit of processes is written, if the kernel has one per PID namespace.
pub const PID_MAX_FD: i32 = 4;
/// Where a limit of System V memory is written, if the kernel lets a sandbox do so.
pub const SHM_ALL_FD: i32 = 5;
/// The first number that means nothing.
pub const FREE_FD_MIN: i32 = 6;

/// A program that the sandbox's creator wants run beside the entrypoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// How its failures are told.
    pub name: String,
    /// When it is due again and again; empty for one that is run once.
    pub schedule: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Most seconds that it may take.
    pub timeout_s: u64,
}

/// What the daemon is told at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The sandbox's id.
    pub id: String,
    /// The program whose end is the sandbox's end, and its arguments; an isolated session has none.
    pub entrypoint: Vec<String>,
    /// Environment of the entrypoint and of every command.
    pub env: BTreeMap<String, String>,
    /// Working directory of the entrypoint, and of commands that name none.
    pub cwd: String,
    /// Memory limit in bytes, for the metrics; `None` when there is none.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// CPU limit in thousandths of a core, for the metrics; `None` when there is none.
    #[serde(default)]
    pub cpu_millis: Option<u64>,
    /// User of commands that name none; `None`: the daemon's own.
    #[serde(default)]
    pub uid: Option<u32>,
    /// Group of those; `None`: that of the user.
    #[serde(default)]
    pub gid: Option<u32>,
    /// Run to its end before the entrypoint is started; if it fails, there is no entrypoint.
    #[serde(default)]
    pub pre_start: Option<Hook>,
    /// Run again and again while the entrypoint runs.
    #[serde(default)]
    pub periodic: Vec<Hook>,
    /// Whom the sandbox is to believe besides those that its image names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

/// Certificates that a sandbox believes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// PEM of who signs for intercepted hosts.
    pub authority: String,
    /// PEM of what a sandbox without a store of its own believes.
    pub roots: String,
}

impl Boot {
    /// What the daemon of a sandbox that is made of this one's is told: the same in all but its
    /// name, its entrypoint, what its environment says over this one's, and whom it believes.
    #[must_use]
    pub fn passed_on(&self, own: Self) -> Self {
        let mut env = self.env.clone();
        env.extend(own.env);
        Self {
            id: own.id,
            entrypoint: own.entrypoint,
            env,
            trust: own.trust,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_believes_the_authority_of_another_sandbox() {
        let boot = |id: &str, authority: Option<&str>| Boot {
            id: id.to_owned(),
            env: BTreeMap::from([(id.to_owned(), String::new())]),
            cwd: format!("/{id}"),
            trust: authority.map(|authority| Trust {
                authority: authority.to_owned(),
                roots: String::new(),
            }),
            ..Boot::default()
        };
        for (source, own) in [(Some("a"), Some("b")), (Some("a"), None), (None, Some("b"))] {
            let made = boot("one", source).passed_on(boot("other", own));
            assert_eq!(made.trust, boot("other", own).trust);
            assert_eq!((made.id.as_str(), made.cwd.as_str()), ("other", "/one"));
            assert_eq!(made.env.len(), 2);
        }
    }

    #[test]
    fn a_boot_without_trust_says_nothing_of_it() {
        let text = serde_json::to_string(&Boot::default()).unwrap();
        assert!(!text.contains("trust"), "{text}");
        assert_eq!(
            serde_json::from_str::<Boot>(&text).unwrap(),
            Boot::default()
        );
    }
}
