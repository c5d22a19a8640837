//! Pure. Where the programs of one user on one host find each other: the state directory.

use std::path::{Path, PathBuf};

/// The environment variable that names the state directory.
pub const STATE_DIR_ENV: &str = "BARCHAN_STATE_DIR";
/// The server's Unix socket in the state directory: local use, checked by peer credentials.
pub const API_SOCKET: &str = "api.sock";
/// Held by whoever starts a private server, so that many at once start one.
pub const PRIVATE_LOCK: &str = "private.lock";
/// What a private server logs.
pub const PRIVATE_LOG: &str = "private.log";
/// The state directory of root.
pub const STATE_DIR_ROOT: &str = "/var/lib/barchan";

/// The state directory of a user: what the environment names, else the system's for root, else the
/// user's own. `None` when nothing says where home is.
#[must_use]
pub fn state_dir(
    named: Option<&Path>,
    is_root: bool,
    xdg_state_home: Option<&Path>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let given = |path: Option<&Path>| path.filter(|it| it.is_absolute()).map(Path::to_path_buf);
    if let Some(path) = named.filter(|it| !it.as_os_str().is_empty()) {
        return Some(path.to_path_buf());
    }
    if is_root {
        return Some(PathBuf::from(STATE_DIR_ROOT));
    }
    let own = given(xdg_state_home).or_else(|| Some(given(home)?.join(".local/state")));
    own.map(|it| it.join("barchan"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins() {
        for (named, is_root, state, home, expected) in [
            ("/s", true, "/x", "/home/u", Some("/s")),
            ("", true, "/x", "/home/u", Some("/var/lib/barchan")),
            ("", false, "/x", "/home/u", Some("/x/barchan")),
            (
                "",
                false,
                "",
                "/home/u",
                Some("/home/u/.local/state/barchan"),
            ),
            (
                "",
                false,
                "relative",
                "/home/u",
                Some("/home/u/.local/state/barchan"),
            ),
            ("", false, "", "", None),
        ] {
            let found = state_dir(
                Some(Path::new(named)),
                is_root,
                Some(Path::new(state)),
                Some(Path::new(home)),
            );
            assert_eq!(found.as_deref(), expected.map(Path::new));
        }
    }
}
