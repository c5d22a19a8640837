//! Terminals, on a terminal of the test's own.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::fake::{Fake, ID, Script};

/// Longest wait for what must happen soon.
const SOON: Duration = Duration::from_secs(20);

/// A terminal with the program on it.
pub(crate) struct Screen {
    master: File,
    slave: OwnedFd,
    child: Child,
    text: Vec<u8>,
}

impl Screen {
    pub(crate) fn start(mut program: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let end = || slave.try_clone().unwrap();
        let mut screen = Self {
            child: program
                .stdin(end())
                .stdout(end())
                .stderr(end())
                .spawn()
                .unwrap(),
            master: master.into(),
            slave,
            text: Vec::new(),
        };
        screen.resize(91, 33);
        screen
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        let size = Winsize {
            ws_col: cols,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).unwrap();
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn kind(&mut self, text: &[u8]) {
        self.master.write_all(text).unwrap();
    }

    pub(crate) fn shows(&mut self, text: &[u8]) -> bool {
        let mut piece = [0; 4096];
        match self.master.read(&mut piece) {
            Ok(taken) => self.text.extend(&piece[..taken]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        self.text.windows(text.len()).any(|window| window == text)
    }

    pub(crate) async fn code(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(SOON, self.child.wait()).await;
        ended.unwrap().unwrap().code()
    }
}

pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(SOON, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "in vain: {what}");
}

#[tokio::test]
async fn keys_go_in_output_comes_out_and_the_terminal_is_as_before() {
    for arguments in [
        &["shell", "--cwd", "/w", ID][..],
        &[
            "exec", "-it", "-e", "A=b c", "--cwd", "/w", ID, "--", "sh", "-c", "it's",
        ],
    ] {
        let fake = Fake::start(Script::Hangs);
        let mut screen = Screen::start(fake.program(arguments));
        assert!(!screen.is_raw());
        until("output", || screen.shows(b"\xffhello\r\n")).await;
        until("raw input", || screen.is_raw()).await;
        screen.kind(b"\x03\x04\x1a\r");
        until("keys", || {
            fake.seen.lock().unwrap().typed == b"\x03\x04\x1a\r"
        })
        .await;
        screen.resize(70, 20);
        screen.signal(Signal::WINCH);
        let size = json!({"type": "resize", "cols": 70, "rows": 20});
        until("the size", || {
            fake.seen.lock().unwrap().sizes.last() == Some(&size)
        })
        .await;
        screen.kind(b"q");
        assert_eq!(screen.code().await, Some(7));
        assert!(!screen.is_raw());
        let calls = fake.calls();
        assert_eq!(
            calls[calls.len() - 2..],
            ["open terminal", "close terminal"]
        );
        let seen = fake.seen.lock().unwrap();
        assert_eq!(
            seen.sizes[0],
            json!({"type": "resize", "cols": 91, "rows": 33})
        );
        let wanted = match arguments[0] {
            "shell" => json!({"cwd": "/w"}),
            _ => json!({"cwd": "/w", "command": r"exec env 'A=b c' 'sh' '-c' 'it'\''s'"}),
        };
        assert_eq!(seen.terminals, [wanted]);
    }
}

#[tokio::test]
async fn a_signal_ends_it_and_the_terminal_is_as_before() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let fake = Fake::start(Script::Hangs);
        let mut screen = Screen::start(fake.program(&["shell", ID]));
        until("raw input", || screen.is_raw()).await;
        screen.signal(signal);
        assert_eq!(screen.code().await, Some(code));
        assert!(!screen.is_raw());
        assert_eq!(
            fake.calls().last().map(String::as_str),
            Some("close terminal")
        );
    }
}

#[tokio::test]
async fn without_a_terminal_there_is_none() {
    let fake = Fake::start(Script::Hangs);
    let mut program = fake.program(&["shell", ID]);
    let ran = program
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(ran.status.code(), Some(125));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("no terminal"), "{said}");
    assert!(!fake.calls().contains(&"open terminal".to_owned()));
}
