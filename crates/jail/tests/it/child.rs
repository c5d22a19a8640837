//! Starting processes, on a bare host.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use barchan_jail::child::{Child, spawn};
use rustix::process::{WaitOptions, waitpid};

/// Runs `argv` unconfined; its exit code and output, or the step that failed.
fn run(argv: &[&str]) -> Result<(i32, String), String> {
    let argv: Vec<_> = argv
        .iter()
        .map(|text| CString::new(*text).unwrap())
        .collect();
    let null = File::open("/dev/null").unwrap();
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let child = Child {
        program: &argv[0],
        argv: &argv,
        env: &[CString::new("GREETING=hello").unwrap()],
        cwd: c"/",
        stdin: null.as_fd(),
        stdout: writer.as_fd(),
        stderr: writer.as_fd(),
        extra: None,
        ids: None,
        tty: false,
        confine: false,
    };
    let pid = spawn(&child).map_err(|error| error.step.to_owned())?;
    drop(writer);
    let mut output = String::new();
    File::from(reader).read_to_string(&mut output).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    Ok((status.exit_status().unwrap(), output))
}

#[test]
fn a_child_gets_its_environment_and_nothing_else() {
    let (code, output) = run(&["/usr/bin/env"]).unwrap();
    assert_eq!((code, output.as_str()), (0, "GREETING=hello\n"));
}

#[test]
fn a_child_inherits_no_descriptor() {
    let (code, output) = run(&["/bin/ls", "/proc/self/fd"]).unwrap();
    assert_eq!(
        (code, output.as_str()),
        (0, "0\n1\n2\n3\n"),
        "3 is ls's own"
    );
}

#[test]
fn a_missing_program_is_named_as_the_step() {
    assert_eq!(run(&["/no/such/program"]), Err("exec".to_owned()));
}

#[test]
fn sigpipe_ends_a_child_as_it_should() {
    let (code, _) = run(&[
        "/bin/sh",
        "-c",
        "(yes; echo $? >&2) 2>&1 1>/dev/full | head -1",
    ])
    .unwrap();
    assert_eq!(code, 0);
}
