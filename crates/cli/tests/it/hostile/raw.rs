//! A server with a TCP port, and requests to it byte by byte.

use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use barchan_testkit::leftovers;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;
use tokio::time::Instant;

use crate::program::program;
use crate::whole::listener;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Served {
    home: TempDir,
    server: Child,
    address: SocketAddr,
    key: String,
    /// What carried the name of its state directory before there was one.
    foreign: Vec<String>,
}

/// An answer, read to its end or to the end of its head.
#[derive(Debug)]
pub(crate) struct Answer {
    status: String,
    body: Vec<u8>,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// With further settings of the server.
    pub(crate) async fn start_with(settings: &str) -> Self {
        let home = TempDir::new().unwrap();
        let state = home.path().join("state");
        DirBuilder::new().mode(0o700).create(&state).unwrap();
        let foreign = leftovers::of(&state);
        let file = home.path().join("settings.toml");
        std::fs::write(&file, format!("[server]\nport = 0\n{settings}\n")).unwrap();
        let log = home.path().join("server.log");
        let mut command = program(home.path());
        command.arg("serve").arg("-c").arg(&file);
        command.stderr(std::fs::File::create(&log).unwrap());
        let server = command.spawn().unwrap();
        let listening = || {
            let log = std::fs::read_to_string(&log).unwrap();
            let at = log.split("listening address=").nth(1)?;
            at.split_whitespace().next()?.parse().ok()
        };
        let deadline = Instant::now() + PATIENCE;
        let address = loop {
            if let Some(address) = listening() {
                break address;
            }
            assert!(Instant::now() < deadline, "it does not listen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let key = std::fs::read_to_string(home.path().join("state/server/api_key")).unwrap();
        Self {
            home,
            server,
            address,
            key: key.trim().to_owned(),
            foreign,
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub(crate) fn key_line(&self) -> String {
        format!("OPEN-SANDBOX-API-KEY: {}\r\n", self.key)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn connect_unix(&self) -> UnixStream {
        let stream = UnixStream::connect(self.state().join("server/api.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes over TCP, and reads an answer.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has seen enough may close while there is more to send.
        let _ = stream.write_all(bytes);
        answer_of(&mut stream, true)
    }

    /// Sends a request, whose answer may be read later.
    pub(crate) fn begin(&self, method: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        // A server that has seen enough may close while there is more to send.
        let _ = stream.write_all(&self.request(method, path, body));
        stream
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.key_line(),
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    fn call(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let by_tcp = answer_of(&mut self.begin(method, path, body), true);
        if method == "GET" {
            // The Unix socket is another way to the same answer.
            let mut stream = self.connect_unix();
            stream.write_all(&self.request(method, path, body)).unwrap();
            assert_eq!(answer_of(&mut stream, true).code(), by_tcp.code(), "{path}");
        }
        by_tcp
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, b"")
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.call("POST", path, body)
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, b"")
    }

    pub(crate) fn try_create(&self, changes: &Value) -> Answer {
        answer_of(&mut self.begin_create(changes), true)
    }

    /// Asks for a sandbox, whose answer may be read later.
    pub(crate) fn begin_create(&self, changes: &Value) -> TcpStream {
        let mut body = json!({
            "image": {"uri": "host"},
            "timeout": 600,
            "resourceLimits": {"memory": "256Mi"},
            "entrypoint": ["tail", "-f", "/dev/null"],
        });
        let changes = changes.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(changes);
        self.begin("POST", "/v1/sandboxes", body.to_string().as_bytes())
    }

    pub(crate) fn create(&self) -> String {
        let created = self.try_create(&json!({}));
        assert_eq!(created.code(), "202");
        created.id()
    }

    pub(crate) fn token(&self, id: &str) -> String {
        let endpoint = self
            .get(&format!("/v1/sandboxes/{id}/endpoints/44772"))
            .json();
        let token = &endpoint["headers"]["X-EXECD-ACCESS-TOKEN"];
        token.as_str().unwrap().to_owned()
    }

    /// Polls until the JSON at a path is as wanted.
    pub(crate) fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) {
        self.wait(path, || holds(&self.get(path).json()));
    }

    pub(crate) fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process that makes the sandboxes.
    pub(crate) fn launcher(&self) -> Pid {
        listener(&self.state().join("jail/launcher.sock")).unwrap()
    }

    fn pid(&self) -> Pid {
        listener(&self.home.path().join("state/server/api.sock")).unwrap()
    }

    /// How many descriptors the server has open.
    pub(crate) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.pid().as_raw_nonzero());
        std::fs::read_dir(folder).unwrap().count()
    }

    /// Memory that the server holds, in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
        let words = line.unwrap().split_whitespace().next();
        words.unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    /// Ends every sandbox and the server, then waits for the launcher, which leaves by itself, and
    /// for the last trace of them.
    fn drop(&mut self) {
        let state = self.home.path().join("state");
        let launcher = listener(&state.join("jail/launcher.sock"));
        let listed = self.raw(
            format!(
                "GET /v1/sandboxes?pageSize=200 HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
                self.key_line()
            )
            .as_bytes(),
        );
        let listed: Value = serde_json::from_slice(&listed.body).unwrap_or_default();
        for sandbox in listed["items"].as_array().into_iter().flatten() {
            let id = sandbox["id"].as_str().unwrap_or_default();
            self.call("DELETE", &format!("/v1/sandboxes/{id}"), b"");
        }
        let server = listener(&state.join("server/api.sock"));
        if let Some(pid) = server {
            let _ = kill_process(pid, Signal::TERM);
        }
        for pid in server.into_iter().chain(launcher) {
            let deadline = Instant::now() + PATIENCE;
            while test_kill_process(pid).is_ok() && Instant::now() < deadline {
                let _ = self.server.try_wait();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        if !std::thread::panicking() {
            self.wait("nothing is left on this host", || {
                let mut left = leftovers::of(&state);
                left.retain(|it| !self.foreign.contains(it));
                left.is_empty()
            });
        }
    }
}

/// Reads an answer; without `whole` only its head.
pub(crate) fn answer_of(stream: &mut impl Read, whole: bool) -> Answer {
    let mut all = Vec::new();
    let mut piece = [0; 65_536];
    let end = |all: &[u8]| all.windows(4).position(|it| it == b"\r\n\r\n");
    let mut read = |all: &mut Vec<u8>| match stream.read(&mut piece) {
        Ok(got @ 1..) => {
            all.extend_from_slice(&piece[..got]);
            true
        }
        _ => false,
    };
    while end(&all).is_none() {
        assert!(
            read(&mut all),
            "no answer, but {:?}",
            String::from_utf8_lossy(&all)
        );
    }
    let at = end(&all).unwrap();
    let head = String::from_utf8_lossy(&all[..at]).to_lowercase();
    let mut body = all.split_off(at + 4);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let is_chunked = head.contains("transfer-encoding: chunked");
    while whole && (body.len() < length || (is_chunked && !body.ends_with(b"0\r\n\r\n"))) {
        assert!(read(&mut body), "{head}: the body breaks off");
    }
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    Answer { status, body }
}

impl Answer {
    /// Status and code, if there is one.
    pub(crate) fn code(&self) -> String {
        let json: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match json["code"].as_str() {
            Some(code) => format!("{} {code}", self.status.trim()),
            None => self.status.trim().to_owned(),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }
}
