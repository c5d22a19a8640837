//! Logs, on standard error.

use std::io::{self, IsTerminal};
use std::sync::Arc;

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
    /// What wrote logs is no more.
    #[error("logs are no longer written")]
    Gone,
}

/// Changes the level of logs that are being written.
#[derive(Clone)]
pub struct Level(Arc<dyn Fn(EnvFilter) -> bool + Send + Sync>);

impl Level {
    /// From now on writes events of this level and above.
    ///
    /// # Errors
    /// When the level is no filter; nothing changes then.
    pub fn set(&self, level: &str) -> Result<(), LogError> {
        match (self.0)(filter(level)?) {
            true => Ok(()),
            false => Err(LogError::Gone),
        }
    }
}

impl std::fmt::Debug for Level {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Level")
    }
}

/// Writes events of this level and above to standard error, as lines or as JSON.
///
/// # Errors
/// When the level is no filter, or logs are set up already.
pub fn init(level: &str, json: bool) -> Result<Level, LogError> {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(level)?)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(|| Lossy(io::stderr()));
    let (done, level) = if json {
        let lines = lines.json().with_filter_reloading();
        let handle = lines.reload_handle();
        (
            lines.try_init(),
            Level(Arc::new(move |it| handle.reload(it).is_ok())),
        )
    } else {
        let lines = lines.with_filter_reloading();
        let handle = lines.reload_handle();
        (
            lines.try_init(),
            Level(Arc::new(move |it| handle.reload(it).is_ok())),
        )
    };
    done.map_err(|_| LogError::Twice)?;
    Ok(level)
}

/// Standard error that never fails: a line that cannot be written is lost. Its file may lie on a
/// full disk, or its reader may be gone; and what formats the lines would complain of that on
/// standard error, too, and end the thread that did nothing but log.
struct Lossy(io::Stderr);

impl io::Write for Lossy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// Whether a text is a level or a filter.
#[must_use]
pub fn is_level(level: &str) -> bool {
    filter(level).is_ok()
}

fn filter(level: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(level).map_err(|_| LogError::BadLevel(level.to_owned()))
}
