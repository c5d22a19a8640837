//! What is wrong or doubtful in settings, and where it stands.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of a settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A flag of the command.
    Flag {
        /// The flag.
        flag: &'static str,
    },
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The settings cannot be used.
    Error,
    /// They can, and may do other than was meant.
    Warning,
}

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The setting, if it is about one.
    pub key: Option<String>,
    /// Where it stands.
    pub origin: Origin,
    /// What is wrong and what is right. Never a value that may be secret.
    pub message: String,
}

impl Finding {
    pub(crate) fn error(key: Option<&str>, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            key: key.map(str::to_owned),
            origin,
            message: message.into(),
        }
    }

    pub(super) fn warning(key: Option<&str>, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(key, origin, message)
        }
    }

    /// Faults before doubts, and each in the order of the file, the environment behind it.
    pub(super) fn rank(&self) -> (bool, usize) {
        let line = match self.origin {
            Origin::File { line, .. } => line,
            _ => usize::MAX,
        };
        (!self.is_error(), line)
    }

    /// Whether the settings cannot be used for this.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl Origin {
    pub(super) fn file(path: &Path, line: usize) -> Self {
        Self::File {
            path: path.to_owned(),
            line,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Environment { variable } => out.write_str(variable),
            Self::Flag { flag } => out.write_str(flag),
        }
    }
}

/// Place, setting, and what is wrong.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => {}
            origin => write!(out, "{origin}: ")?,
        }
        if let Some(key) = &self.key {
            write!(out, "{key}: ")?;
        }
        out.write_str(&self.message)
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file that was asked for is not there.
    #[error("no settings file at {0}: `barchan init-config {0}` writes one")]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("the settings file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is another server's.
    #[error(
        "{0} is a settings file of OpenSandbox's server: `barchan config import {0} --write \
         barchan.toml` says what of it means what here, and writes ours"
    )]
    Foreign(PathBuf),
    /// What is written there is no good.
    #[error("the settings cannot be used: {}", listed(.0))]
    Faulty(Vec<Finding>),
    /// The server was given its settings by a program that does not read them again.
    #[error("this server's settings do not come from a file or the environment")]
    Fixed,
}

/// One fault beside the sentence, several below it.
fn listed(findings: &[Finding]) -> String {
    let mut faults = findings.iter().filter(|finding| finding.is_error());
    match (faults.next(), faults.next()) {
        (Some(only), None) => only.to_string(),
        _ => findings
            .iter()
            .filter(|finding| finding.is_error())
            .map(|fault| format!("\n  {fault}"))
            .collect(),
    }
}
