//! The process of a terminal.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use barchan_jail::child::{self, Child};
use barchan_wire::execd::pty::{Mode, Signal as Asked};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;

use super::Terminal;
use crate::app::App;
use crate::command::pipe::{self, Output};
use crate::command::start::refusal;
use crate::command::tree::MARK;
use crate::environment::to_c;
use crate::fault::{Fault, Kind, text};
use crate::files::expand::escape;
use crate::process::Ended;
use crate::program;

/// Size of a terminal until a caller tells another.
const SIZE: Winsize = Winsize {
    ws_col: 80,
    ws_row: 24,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// What a program takes the terminal for when nobody says.
const TERM: &str = "xterm-256color";

/// A process, and where its input goes.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// How it is connected.
    pub(super) mode: Mode,
    input: Rc<Sender>,
}

/// Where output comes from.
#[derive(Debug)]
pub(super) enum Printed {
    Terminal(Receiver),
    Pipes(Output, Output),
}

/// What stays with whoever follows a process.
pub(super) type Started = (Process, Printed, oneshot::Receiver<Ended>);

/// Starts the process of a terminal.
pub(super) fn start(app: &App, terminal: &Terminal, mode: Mode) -> Result<Started, Fault> {
    let failed = |errno| {
        let message = format!("cannot open a terminal: {}", text(errno));
        Fault::new(Kind::Failed, message)
    };
    let (input, printed, pid) = match mode {
        Mode::Pty => {
            let (master, slave) = pair().map_err(failed)?;
            let io = |error: io::Error| failed(crate::fault::errno(&error));
            // A terminal is no pipe, but is read and written like one.
            let output = master.try_clone().map_err(io)?;
            let output = Receiver::from_owned_fd_unchecked(output).map_err(io)?;
            let input = Sender::from_owned_fd_unchecked(master).map_err(io)?;
            let pid = spawn(app, terminal, [slave.as_fd(); 3], true)?;
            (input, Printed::Terminal(output), pid)
        }
        Mode::Pipe => {
            let (stdin, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
            let (stdout, out) = pipe::pair().map_err(failed)?;
            let (stderr, err) = pipe::pair().map_err(failed)?;
            let input = Sender::from_owned_fd(writer)
                .map_err(|error| failed(crate::fault::errno(&error)))?;
            let ends = [stdin.as_fd(), out.as_fd(), err.as_fd()];
            let pid = spawn(app, terminal, ends, false)?;
            (input, Printed::Pipes(stdout, stderr), pid)
        }
    };
    let process = Process {
        pid,
        mode,
        input: Rc::new(input),
    };
    Ok((process, printed, app.reaper.watch(pid)))
}

/// Both ends of a new terminal.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    // It must not become this daemon's own.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    // By descriptor: what the sandbox mounts at /dev/pts does not matter.
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    tcsetwinsize(&master, SIZE)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}

fn spawn(
    app: &App,
    terminal: &Terminal,
    ends: [std::os::fd::BorrowedFd<'_>; 3],
    tty: bool,
) -> Result<Pid, Fault> {
    let mut variables = app.environment.now();
    variables.insert(MARK.to_owned(), terminal.id.clone());
    let cwd = terminal.cwd.as_os_str().as_bytes();
    variables.insert("PWD".to_owned(), escape(cwd));
    variables
        .entry("TERM".to_owned())
        .or_insert_with(|| TERM.to_owned());
    let path = variables.get("PATH").map_or("", String::as_str);
    let Some(shell) = program::shell(path) else {
        let message = "this image has no shell (neither bash nor sh), so it has no terminals";
        return Err(Fault::new(Kind::NotSupported, message));
    };
    let mut argv = vec![shell.clone()];
    if shell.to_bytes().ends_with(b"bash") {
        argv.extend([c"--noprofile".to_owned(), c"--norc".to_owned()]);
    }
    if let Some(command) = &terminal.command {
        let nul = |_| Fault::new(Kind::BadRequest, "`command` holds a NUL byte");
        argv.extend([
            c"-c".to_owned(),
            CString::new(command.as_str()).map_err(nul)?,
        ]);
    }
    let [stdin, stdout, stderr] = ends;
    child::spawn(&Child {
        program: &shell,
        argv: &argv,
        env: &to_c(&variables),
        cwd: &CString::new(cwd).unwrap_or_default(),
        stdin,
        stdout,
        stderr,
        extra: None,
        ids: None,
        tty,
        confine: app.confine,
    })
    .map_err(|error| refusal(error, None, &terminal.cwd))
}

impl Process {
    /// Sets the window's size; pipes have none.
    pub(super) fn resize(&self, cols: u16, rows: u16) {
        if self.mode == Mode::Pty {
            let size = Winsize {
                ws_col: cols,
                ws_row: rows,
                ..SIZE
            };
            // Fails only when the terminal has gone.
            let _ = tcsetwinsize(&*self.input, size);
        }
    }

    /// Sends a signal to what runs in the foreground.
    pub(super) fn signal(&self, asked: Asked) {
        let signal = match asked {
            Asked::SigInt => Signal::INT,
            Asked::SigTerm => Signal::TERM,
            Asked::SigKill => Signal::KILL,
            Asked::SigQuit => Signal::QUIT,
            Asked::SigHup => Signal::HUP,
        };
        let group = match self.mode {
            Mode::Pty => tcgetpgrp(&*self.input).ok(),
            Mode::Pipe => Some(self.pid),
        };
        if let Some(group) = group {
            // Whoever was meant may have ended.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Where its input goes.
    pub(super) fn input(&self) -> Rc<Sender> {
        Rc::clone(&self.input)
    }
}

/// Waits until some input is taken, and says how much.
pub(super) async fn write(input: &Sender, bytes: &[u8]) -> io::Result<usize> {
    loop {
        input.writable().await?;
        match input.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
    }
}
