//! Where the static guest programs of this checkout lie.

use std::path::{Path, PathBuf};

/// The environment variable that names their folder; `make` sets it.
const FOLDER_ENV: &str = "BARCHAN_GUESTS_DIR";

/// A guest program by its name: `barchan-jail`, `barchan-execd` or `barchan-egress`.
///
/// # Panics
/// When it has not been built: a test that needs it cannot go on, and must not be skipped.
#[must_use]
#[expect(
    clippy::panic,
    reason = "a missing guest fails the test with what to do"
)]
pub fn program(name: &str) -> PathBuf {
    let named = std::env::var_os(FOLDER_ENV).map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = named.unwrap_or_else(|| root.join("target").join(host).join("guest"));
    let program = folder.join(name);
    assert!(
        program.exists(),
        "{} is missing: run `make guests` first",
        program.display()
    );
    program
        .canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}
