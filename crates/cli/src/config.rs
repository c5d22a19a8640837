//! What the program reads from its surroundings: environment, settings file, terminal.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use barchan_server::config as server;
use barchan_wire::secret::Secret;
use serde::Deserialize;

use crate::args::Global;

/// Largest settings file, in bytes.
const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;

/// Which server the user's settings name: `client.toml` in the user's configuration folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    server: Option<String>,
    api_key: Option<Secret>,
}

/// The server that is to be used.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The one that a flag, the environment or the settings name.
    Named {
        /// Its address.
        address: String,
        /// Its key.
        key: Option<Secret>,
    },
    /// The user's own, in this state directory.
    Private(PathBuf),
}

impl Choice {
    /// The nearest word wins: flag, environment, settings; else the private server.
    pub(crate) fn of(global: &Global) -> Result<Self> {
        let settings = settings()?;
        let key = global
            .api_key
            .as_ref()
            .map(Secret::new)
            .or(settings.api_key);
        match global.server.clone().or(settings.server) {
            Some(address) => Ok(Self::Named { address, key }),
            None => {
                let loaded = server_settings(global, None)?;
                Ok(Self::Private(server::state_dir(&loaded.settings)))
            }
        }
    }
}

/// The settings of the user's own server: of the file, or of the usual place without one, with the
/// state directory of the flag.
pub(crate) fn server_settings(
    global: &Global,
    file: Option<&Path>,
) -> Result<server::Loaded, server::SettingsError> {
    let mut loaded = server::Settings::load(file)?;
    if let Some(path) = state_dir(global) {
        loaded.set_state_dir(path, "--state-dir");
    }
    Ok(loaded)
}

/// The state directory of the flag.
pub(crate) fn state_dir(global: &Global) -> Option<PathBuf> {
    global.state_dir.clone().map(from_here)
}

/// A path from the root on, whatever folder is the current one later.
pub(crate) fn from_here(path: PathBuf) -> PathBuf {
    // Fails only for an empty path, which no setting is.
    std::path::absolute(&path).unwrap_or(path)
}

/// The names of the variables that are set, as far as they are text.
pub(crate) fn variables() -> Vec<String> {
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok())
        .collect()
}

/// The environment, as far as it is text, and the home folder, for programs that builds start.
pub(crate) fn environment() -> (BTreeMap<String, String>, Option<PathBuf>) {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    (env::vars_os().filter_map(text).collect(), path("HOME"))
}

/// The folder of the guests, where the operator names one.
pub(crate) fn guests_dir() -> Option<PathBuf> {
    path("BARCHAN_GUESTS_DIR")
}

fn settings() -> Result<Settings> {
    let own = path("HOME").map(|home| home.join(".config"));
    let Some(folder) = path("XDG_CONFIG_HOME").or(own) else {
        return Ok(Settings::default());
    };
    let file = folder.join("barchan/client.toml");
    if !file.exists() {
        return Ok(Settings::default());
    }
    let text = small_file(&file)?;
    toml::from_str(&text).with_context(|| {
        format!(
            "{} is no settings file; it may set `server` and `api_key`",
            file.display()
        )
    })
}

/// The text of a settings file.
pub(crate) fn small_file(file: &Path) -> Result<String> {
    let shown = file.display();
    let opened = File::open(file).with_context(|| format!("cannot read {shown}"))?;
    let mut text = String::new();
    opened
        .take(SETTINGS_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {shown}"))?;
    if text.len() as u64 > SETTINGS_BYTES_MAX {
        bail!("{shown} is larger than {SETTINGS_BYTES_MAX} bytes; is it the right file?");
    }
    Ok(text)
}

/// Where output goes and what it may look like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Standard error is a terminal: progress may move on it.
    pub(crate) is_interactive: bool,
    /// Colours are welcome there.
    pub(crate) has_colour: bool,
}

impl Terminal {
    pub(crate) fn read() -> Self {
        let is_interactive = std::io::stderr().is_terminal();
        let refused =
            variable("NO_COLOR").is_some() || variable("TERM").is_some_and(|it| it == "dumb");
        Self {
            is_interactive,
            has_colour: is_interactive && !refused,
        }
    }
}

fn path(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

/// A variable of the environment that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
