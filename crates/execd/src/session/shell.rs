//! A session's shell as a process, and what it says over its control socket.

use std::ffi::CString;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::Duration;

use barchan_jail::child::{self, Child};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::driver::{self, SAVED};
use super::folder::Folder;
use crate::app::App;
use crate::command::start::refusal;
use crate::command::tree::MARK;
use crate::environment::to_c;
use crate::fault::{Fault, Kind};
use crate::files::expand::escape;
use crate::process::{Ended, Exit};
use crate::program;

/// Longest line that a shell says, in bytes.
const LINE_BYTES_MAX: usize = 64;
/// How long what a shell said last is waited for, in milliseconds.
const LAST_WORDS_MS: u64 = 20;

/// A shell.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(super) pid: Pid,
    exit: oneshot::Receiver<Ended>,
    /// How it ended, once that has been seen.
    end: Option<Exit>,
    control: UnixStream,
    unread: Vec<u8>,
    /// It has saved its state and waits for a run.
    is_ready: bool,
}

/// Starts a shell that begins with the state in `folder`, if there is one.
pub(super) fn start(app: &App, id: &str, folder: &Folder, cwd: &Path) -> Result<Shell, Fault> {
    let mut variables = app.environment.now();
    variables.insert(MARK.to_owned(), id.to_owned());
    variables.insert("PWD".to_owned(), escape(cwd.as_os_str().as_bytes()));
    let path = variables.get("PATH").map_or("", String::as_str);
    let Some(shell) = program::shell(path) else {
        let message = "this image has no shell (neither bash nor sh), so it has no sessions";
        return Err(Fault::new(Kind::NotSupported, message));
    };
    let is_bash = shell.to_bytes().ends_with(b"bash");
    let (drive, save) = driver::texts(is_bash, &folder.path());
    folder.write("save", &save)?;
    let mut argv = vec![shell.clone()];
    if is_bash {
        argv.extend([c"--noprofile".to_owned(), c"--norc".to_owned()]);
    }
    argv.extend([c"-c".to_owned(), CString::new(drive).unwrap_or_default()]);
    let (ours, theirs) = sockets().map_err(|error| {
        let message = format!("cannot open a socket for the session's shell: {error}");
        Fault::new(Kind::Failed, message)
    })?;
    let pid = child::spawn(&Child {
        program: &shell,
        argv: &argv,
        env: &to_c(&variables),
        cwd: &CString::new(cwd.as_os_str().as_bytes()).unwrap_or_default(),
        stdin: app.null.as_fd(),
        stdout: app.null.as_fd(),
        stderr: app.null.as_fd(),
        extra: Some(theirs.as_fd()),
        ids: None,
        tty: false,
        confine: app.confine,
    });
    let pid = pid.map_err(|error| refusal(error, None, cwd))?;
    Ok(Shell {
        pid,
        exit: app.reaper.watch(pid),
        end: None,
        control: ours,
        unread: Vec::new(),
        is_ready: false,
    })
}

fn sockets() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let ours = StdStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}

impl Shell {
    /// Waits until it has saved its state; false when it never will. May be given up at any point.
    pub(super) async fn ready(&mut self) -> bool {
        while !self.is_ready {
            match self.line().await {
                Some(line) => self.is_ready = line == SAVED,
                None => return false,
            }
        }
        true
    }

    /// Lets it begin the run whose script is in the folder; false when it is gone.
    pub(super) fn begin(&mut self) -> bool {
        self.is_ready = false;
        matches!(self.control.try_write(b"\n"), Ok(1))
    }

    /// The exit code of the run; or, once the shell has ended or become another program, that one's
    /// end.
    pub(super) async fn status(&mut self) -> Result<i32, Exit> {
        let line = self.line().await;
        match line.as_deref().and_then(driver::status) {
            Some(code) => Ok(code),
            None => match self.end {
                Some(exit) => Err(exit),
                None => Err((&mut self.exit).await.map_or(Exit::LOST, |it| it.0)),
            },
        }
    }

    /// The next line it says; `None` when there will be none.
    async fn line(&mut self) -> Option<String> {
        if self.end.is_none() {
            // Its end need not end the socket: what runs in its background may hold it too.
            tokio::select! {
                biased;
                line = next_line(&self.control, &mut self.unread) => return line,
                exit = &mut self.exit => self.end = Some(exit.map_or(Exit::LOST, |it| it.0)),
            }
        }
        let rest = next_line(&self.control, &mut self.unread);
        timeout(Duration::from_millis(LAST_WORDS_MS), rest)
            .await
            .ok()?
    }
}

/// Reads a line; may be given up at any point.
async fn next_line(control: &UnixStream, unread: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            return Some(String::from_utf8_lossy(line.get(..end)?).into_owned());
        }
        if unread.len() > LINE_BYTES_MAX {
            return None;
        }
        control.readable().await.ok()?;
        let mut piece = [0; LINE_BYTES_MAX];
        match control.try_read(&mut piece) {
            Ok(0) => return None,
            Ok(taken) => unread.extend_from_slice(piece.get(..taken)?),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}
