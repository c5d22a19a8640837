//! Runs the built program with nothing of this machine's settings.

use std::path::Path;
use std::process::Output;

use barchan_testkit::guests;
use tempfile::TempDir;
use tokio::process::Command;

/// What a run of the program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// The program, at home in a folder, about to be given its arguments.
pub(crate) fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_barchan"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("BARCHAN_STATE_DIR", home.join("state"))
        .env(
            "BARCHAN_GUESTS_DIR",
            guests::program("barchan-jail").parent().unwrap(),
        )
        .current_dir(home)
        .kill_on_drop(true);
    command
}

/// Runs it to its end in an empty home.
pub(crate) async fn run(arguments: &[&str]) -> Ran {
    let home = TempDir::new().unwrap();
    program(home.path())
        .args(arguments)
        .output()
        .await
        .unwrap()
        .into()
}
