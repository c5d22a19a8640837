//! A running daemon with a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use barchan_wire::execd::event::{Event, EventKind};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::{self, Answer, Open};

/// The name under which line ends are kept.
pub(crate) const MODERN: (&str, &str) = ("User-Agent", "OpenSandbox-Python-SDK/1.1.1");

pub(crate) struct World {
    folder: tempfile::TempDir,
    daemon: Child,
}

/// How a daemon is started.
pub(crate) struct Setup<'a> {
    pub(crate) entrypoint: Value,
    pub(crate) env: Value,
    /// Another working directory than the world's own.
    pub(crate) cwd: Option<&'a str>,
    /// Whether to wait until it answers.
    pub(crate) ready: bool,
    /// Whether it may look into processes of all users, which a sandbox's daemon may not.
    pub(crate) may_trace: bool,
    /// Started as a container engine would, by `setpriv` with these options, and confining what it
    /// starts.
    pub(crate) injected: Option<&'a [&'a str]>,
    /// Other tables of users and groups than the host's.
    pub(crate) tables: Option<(&'a str, &'a str)>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            entrypoint: json!(["sleep", "1000"]),
            env: json!({}),
            cwd: None,
            ready: true,
            may_trace: true,
            injected: None,
            tables: None,
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        let mut env = setup.env;
        env["EXECD_ENVS"] = json!(at("settings"));
        let cwd = setup.cwd.map_or(at("d"), PathBuf::from);
        let boot = json!({"id": "t", "entrypoint": setup.entrypoint, "env": env, "cwd": cwd});
        std::fs::write(at("boot"), boot.to_string()).unwrap();
        std::fs::write(at("log"), vec![0; 16 + 65_536]).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_barchan-execd"));
        if !setup.may_trace {
            program = Command::new("setpriv");
            program
                .args([
                    "--inh-caps=-all",
                    "--bounding-set=-sys_ptrace,-perfmon,-sys_admin",
                ])
                .arg(env!("CARGO_BIN_EXE_barchan-execd"));
        }
        if let Some(options) = setup.injected {
            let ordinary = options.iter().any(|option| option.starts_with("--reuid"));
            for name in ["", "d", "boot", "log"].iter().filter(|_| ordinary) {
                std::os::unix::fs::chown(at(name), Some(65534), Some(65534)).unwrap();
            }
            program = Command::new("setpriv");
            program
                .args(options)
                .arg("--no-new-privs")
                .arg(env!("CARGO_BIN_EXE_barchan-execd"));
        }
        if let Some((passwd, group)) = setup.tables {
            std::fs::write(at("passwd"), passwd).unwrap();
            std::fs::write(at("group"), group).unwrap();
            const MOUNT: &str = "mount --bind \"$1\" /etc/passwd; \
                mount --bind \"$2\" /etc/group; shift 2; exec \"$@\"";
            program = Command::new("unshare");
            program
                .args(["--mount", "sh", "-ec", MOUNT, "sh"])
                .args([at("passwd"), at("group")])
                .arg(env!("CARGO_BIN_EXE_barchan-execd"));
        }
        let daemon = program
            .args(setup.injected.is_none().then_some("--unconfined"))
            .arg("--socket")
            .arg(at("socket"))
            .arg("--boot")
            .arg(at("boot"))
            .arg("--log")
            .arg(at("log"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let world = Self { folder, daemon };
        if setup.ready {
            until("the daemon answers", || {
                std::os::unix::net::UnixStream::connect(world.at("socket")).is_ok()
            });
        }
        world
    }

    /// A path outside the scratch directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the scratch directory, which is the daemon's working directory.
    pub(crate) fn d(&self, name: &str) -> PathBuf {
        self.at("d").join(name)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// What the entrypoint printed.
    pub(crate) fn log(&self) -> String {
        let file = std::fs::File::open(self.at("log")).unwrap();
        String::from_utf8(barchan_jail::log_ring::read_tail(&file).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_raw(self.daemon.id() as i32).unwrap(), signal);
    }

    /// The exit code, once it has ended by itself.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let mut code = None;
        until("the daemon ends", || {
            code = self.daemon.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }

    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Open {
        http::send_raw(
            &self.at("socket"),
            &http::request(method, path, headers, body),
        )
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.open("GET", path, &[], None).finish()
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.open("DELETE", path, &[], None).finish()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.open("POST", path, &[], Some(body.to_string().as_bytes()))
            .finish()
    }

    /// `path` of a file route for a file in the scratch directory.
    pub(crate) fn query(&self, route: &str, name: impl AsRef<Path>) -> String {
        use std::os::unix::ffi::OsStrExt;
        let path = self.at("d").join(name);
        format!("{route}?path={}", http::encode(path.as_os_str().as_bytes()))
    }

    /// Runs a command in the foreground, as a modern client.
    pub(crate) fn run(&self, body: &Value) -> Run {
        self.start(body).finish()
    }

    /// Runs a script in the foreground.
    pub(crate) fn sh(&self, script: &str) -> Run {
        self.run(&json!({"command": script}))
    }

    /// Starts a command in the foreground.
    pub(crate) fn start(&self, body: &Value) -> Stream {
        self.start_as(body, MODERN)
    }

    pub(crate) fn start_as(&self, body: &Value, agent: (&str, &str)) -> Stream {
        self.stream("/command", body, agent)
    }

    /// The event stream that a route answers.
    pub(crate) fn stream(&self, path: &str, body: &Value, agent: (&str, &str)) -> Stream {
        let body = body.to_string();
        let open = self.open("POST", path, &[agent], Some(body.as_bytes()));
        let status = open.status;
        assert!(status == 200, "{body}: {status} {}", open.finish().text());
        Stream::new(open)
    }

    /// Starts a command in the background; its id.
    pub(crate) fn start_background(&self, script: &str) -> String {
        let run = self.run(&json!({"command": script, "background": true}));
        assert_eq!(run.ends, ["complete"]);
        run.id
    }

    /// The status of a command, once it no longer runs.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let mut status = Value::Null;
        until("the command ends", || {
            status = self.get(&format!("/command/status/{id}")).json();
            status["running"] == false
        });
        status
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let waited = stopwatch();
        while self.daemon.try_wait().is_ok_and(|code| code.is_none()) {
            if waited() > Duration::from_secs(15) {
                let _ = self.daemon.kill();
            }
            std::thread::yield_now();
        }
    }
}

/// A foreground command's events as they come.
pub(crate) struct Stream {
    open: Open,
    unread: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(open: Open) -> Self {
        Self {
            open,
            unread: Vec::new(),
        }
    }

    /// The next event; `None` at the proper end of the stream.
    pub(crate) fn next(&mut self) -> Option<Event<'static>> {
        loop {
            let end = self.unread.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = end {
                let frame: Vec<u8> = self.unread.drain(..end + 2).collect();
                return Some(serde_json::from_slice(&frame[..end]).unwrap());
            }
            match self.open.piece().unwrap() {
                Some(piece) => self.unread.extend(piece),
                None => {
                    assert!(self.unread.is_empty(), "half an event at the end");
                    return None;
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> Run {
        let mut run = Run::default();
        while let Some(event) = self.next() {
            assert!(event.timestamp > 1_700_000_000_000);
            let first = run.id.is_empty();
            assert_eq!(
                first,
                event.kind == EventKind::Init,
                "init comes first and once"
            );
            assert!(run.ends.is_empty(), "{event:?} after the end");
            match event.kind {
                EventKind::Init => run.id = event.text.into_owned(),
                EventKind::Stdout => run.stdout.push(event.text.into_owned()),
                EventKind::Stderr => run.stderr.push(event.text.into_owned()),
                EventKind::Error => {
                    let error = event.error.unwrap();
                    assert_eq!(error.ename, "CommandExecError");
                    run.code = error.evalue.parse().unwrap();
                    run.failure = error.traceback.join("\n");
                    run.ends.push("error");
                }
                EventKind::ExecutionComplete => run.ends.push("complete"),
                EventKind::Ping => run.pings += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(run.ends.len(), 1, "exactly one end: {run:?}");
        run
    }
}

/// What came of a command.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
    pub(crate) code: i32,
    pub(crate) failure: String,
    pub(crate) ends: Vec<&'static str>,
    pub(crate) pings: u32,
}

impl Run {
    pub(crate) fn out(&self) -> String {
        self.stdout.concat()
    }

    pub(crate) fn err(&self) -> String {
        self.stderr.concat()
    }
}

/// The time since this was called.
#[expect(
    clippy::disallowed_methods,
    reason = "tests measure the daemon from outside"
)]
pub(crate) fn stopwatch() -> impl Fn() -> Duration {
    let started = Instant::now();
    move || started.elapsed()
}

/// Waits until something is so, for at most twenty seconds.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = stopwatch();
    while !is_so() {
        assert!(waited() < Duration::from_secs(20), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How many processes run `sleep` with exactly this argument, which every test chooses anew.
pub(crate) fn sleepers(argument: &str) -> usize {
    let wanted = format!("sleep\0{argument}\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line == wanted.as_bytes()).count()
}

/// The most memory the daemon ever had.
pub(crate) fn peak_kib(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
