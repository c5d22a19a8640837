//! Logs, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Why logs cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is no filter.
    #[error(
        "`{0}` is no log level: use error, warn, info, debug or trace, or a filter such as \
         `info,barchan_server=debug`"
    )]
    BadLevel(String),
    /// Logs are set up already.
    #[error("logs are set up twice in one program")]
    Twice,
}

/// Writes events of this level and above to standard error, as lines or as JSON.
///
/// # Errors
/// When the level is no filter, or logs are set up already.
pub fn init(level: &str, json: bool) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(level).map_err(|_| LogError::BadLevel(level.to_owned()))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let done = if json {
        lines.json().try_init()
    } else {
        lines.try_init()
    };
    done.map_err(|_| LogError::Twice)
}
