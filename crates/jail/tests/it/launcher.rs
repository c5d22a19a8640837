//! The launcher's program, started where it cannot work.

use std::process::Command;

/// What it says when it is started on a fresh state directory with these limits.
fn refusal(limits: &[&str], options: &[&str]) -> String {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new("prlimit");
    command.args(limits);
    command.arg(env!("CARGO_BIN_EXE_barchan-jail"));
    command.arg("--state").arg(state.path());
    command.args(["--execd", "/bin/true"]).args(options);
    let ran = command.output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_launcher_that_cannot_work_says_so_and_does_not_begin() {
    let too_large = (1_u64 << 63).to_string();
    for (limits, options, told) in [
        (
            ["--nofile=64"],
            ["--blanks", "1"],
            "may open 64 files and needs 256",
        ),
        (
            ["--nofile=1024"],
            ["--disk-bytes", &too_large],
            "limits.default.disk: a disk or volume of 9223372036854775808 bytes is too large",
        ),
    ] {
        let said = refusal(&limits, &options);
        assert!(said.contains(told), "{said}");
    }
}
