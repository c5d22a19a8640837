//! A running program between a sandbox and an internet.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::{self, Answer};
use crate::place::{PATIENCE, Place, pair, send};

/// The sandbox of most tests.
pub(crate) const ID: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";
/// A public address, and another.
pub(crate) const PUBLIC: &str = "93.184.216.34";
pub(crate) const OTHER: &str = "93.184.216.99";

pub(crate) struct World {
    pub(crate) sandbox: Place,
    pub(crate) internet: Place,
    pub(crate) pid: i32,
    handover: Option<OwnedFd>,
    folder: tempfile::TempDir,
}

impl World {
    /// A program that knows the sandbox's doors, of which TCP is this port, and no rules.
    pub(crate) fn without_rules(port: u16) -> Self {
        let sandbox = Place::new(&[
            "route add local default dev lo",
            "-6 route add local default dev lo",
        ]);
        // The address from which one goes there is another, as if they were not one's own.
        let internet = Place::new(&[
            "address add 198.51.100.1/32 dev lo",
            "route add local 93.184.216.0/24 dev lo src 198.51.100.1",
            "address add 9.9.9.9/32 dev lo",
        ]);
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let (handover, other) = pair();
        let program = env!("CARGO_BIN_EXE_barchan-egress");
        let pid = internet.run(program, &other, listener.as_fd());
        drop(other);
        let world = Self {
            sandbox,
            internet,
            pid,
            handover: Some(handover),
            folder,
        };
        world.open(ID, port, 53);
        world
    }

    /// The same, with rules for the sandbox.
    pub(crate) fn new(port: u16, policy: &Value) -> Self {
        let world = Self::without_rules(port);
        world.guard(&json!({"policy": policy, "version": 1}));
        world
    }

    /// Hands over doors of a sandbox.
    pub(crate) fn open(&self, id: &str, tcp: u16, udp: u16) {
        let tcp = self.sandbox.listen("::", tcp);
        let udp = self.sandbox.bind("::", udp);
        self.tell(&format!("open {id}"), &[tcp.as_fd(), udp.as_fd()]);
    }

    /// Sends a message of the launcher.
    pub(crate) fn tell(&self, text: &str, descriptors: &[std::os::fd::BorrowedFd<'_>]) {
        send(self.handover.as_ref().unwrap(), text, descriptors);
    }

    /// Ends the launcher; the program's exit code.
    pub(crate) fn launcher_ends(&mut self) -> i32 {
        self.handover.take();
        self.internet.wait()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// One request to the program.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Answer {
        http::ask(&self.socket(), method, path, body)
    }

    /// One request about the sandbox of most tests.
    pub(crate) fn of(&self, method: &str, path: &str, body: &str) -> Answer {
        self.api(method, &format!("/sandboxes/{ID}{path}"), body)
    }

    pub(crate) fn guard(&self, guarded: &Value) {
        let answer = self.of("PUT", "", &guarded.to_string());
        assert_eq!(answer.status, 204, "{}", answer.text());
    }

    /// Sets the operator's settings.
    pub(crate) fn settings(&self, settings: &Value) {
        let answer = self.api("PUT", "/settings", &settings.to_string());
        assert_eq!(answer.status, 204, "{}", answer.text());
    }

    /// What is told of the newest connection for which this holds, once it does.
    pub(crate) fn connection(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        until(what, || {
            let all = self.of("GET", "/x/connections", "").json();
            let all = all["connections"].as_array().unwrap().clone();
            found = all.into_iter().find(&holds).unwrap_or_default();
            !found.is_null()
        });
        found
    }

    /// Whether a connection of the sandbox is reset without a word, maybe while it is made.
    pub(crate) fn is_refused(&self, address: &str, port: u16) -> bool {
        match self.sandbox.try_connect(address, port) {
            Ok(client) => is_reset(&client),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Why the newest connection was refused.
    pub(crate) fn refusal(&self) -> String {
        let refused = self.connection("a connection is refused", |it| it["verdict"] == "deny");
        refused["reason"].as_str().unwrap().to_owned()
    }

    /// A number of the program's status, in KiB.
    pub(crate) fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn descriptors(&self) -> usize {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap();
        all.count()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && self.handover.is_some() {
            eprintln!("{}", self.of("GET", "/x/connections", "").text());
        }
        if self.handover.take().is_some()
            && let Some(pid) = Pid::from_raw(self.pid)
        {
            let _ = kill_process(pid, Signal::TERM);
            self.internet.wait();
        }
    }
}

/// How long ago this was called.
#[expect(
    clippy::disallowed_methods,
    reason = "a test may look how long it waits"
)]
pub(crate) fn stopwatch() -> impl Fn() -> Duration {
    let started = Instant::now();
    move || started.elapsed()
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = stopwatch();
    while !is_so() {
        assert!(waited() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A policy of rules, each as `allow example.com`.
pub(crate) fn policy(default: &str, rules: &[&str]) -> Value {
    let rules = rules.iter().map(|rule| {
        let (action, target) = rule.split_once(' ').unwrap();
        json!({"action": action, "target": target})
    });
    json!({"defaultAction": default, "egress": rules.collect::<Vec<_>>()})
}

/// The next connection of a server.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether nobody is waiting to be accepted.
pub(crate) fn nobody_came(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    let nobody = matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
    nobody
}

/// Reads exactly so many bytes.
pub(crate) fn read(mut stream: &TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Reads to the end.
pub(crate) fn read_all(mut stream: &TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn write(mut stream: &TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

/// Whether a connection is reset, after whatever was sent on it.
pub(crate) fn is_reset(mut stream: &TcpStream) -> bool {
    let mut bytes = Vec::new();
    let read: io::Result<usize> = stream.read_to_end(&mut bytes);
    matches!(read, Err(error) if error.kind() == ErrorKind::ConnectionReset)
}

/// Has the kernel reset a connection.
pub(crate) fn reset(stream: TcpStream) {
    let now = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(&stream, now).unwrap();
    drop(stream);
}
