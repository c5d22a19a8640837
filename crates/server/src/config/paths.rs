//! Where settings and state lie when nobody says otherwise.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::Settings;

/// The settings file that is read when none is named; it need not exist.
#[must_use]
pub fn settings_path() -> PathBuf {
    match home_of_others() {
        None => PathBuf::from("/etc/barchan/barchan.toml"),
        Some(home) => from_env("XDG_CONFIG_HOME")
            .unwrap_or_else(|| home.join(".config"))
            .join("barchan/barchan.toml"),
    }
}

/// Where OpenSandbox's server has its settings.
#[must_use]
pub fn foreign_path() -> PathBuf {
    let named = from_env("SANDBOX_CONFIG_PATH");
    let home = || from_env("HOME").unwrap_or_else(|| PathBuf::from("/"));
    named.unwrap_or_else(|| home().join(".sandbox.toml"))
}

/// The state directory of these settings.
#[must_use]
pub fn state_dir(settings: &Settings) -> PathBuf {
    if let Some(dir) = &settings.store.state_dir {
        return dir.clone();
    }
    match home_of_others() {
        None => PathBuf::from("/var/lib/barchan"),
        Some(home) => from_env("XDG_STATE_HOME")
            .unwrap_or_else(|| home.join(".local/state"))
            .join("barchan"),
    }
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The home directory of a user that is not root.
fn home_of_others() -> Option<PathBuf> {
    if is_root() {
        None
    } else {
        Some(from_env("HOME").unwrap_or_else(|| PathBuf::from("/")))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "settings are read here and nowhere else"
)]
fn from_env(name: &str) -> Option<PathBuf> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
