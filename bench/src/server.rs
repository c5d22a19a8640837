//! A server of our own, with a state directory of its own, gone without a trace at the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::args::{Options, Part};
use crate::http::Connection;
use crate::{host, ticker};

/// Spares of a server that is to have some.
pub(crate) const SPARES: usize = 4;
/// The image that sandboxes are made of.
pub(crate) const IMAGE: &str = "bench";
/// The image that code contexts are made in.
pub(crate) const CODE_IMAGE: &str = "bench-code";
/// Its kernel.
const KERNEL: &str = "ipykernel==7.4.0";
/// The static program in it.
pub(crate) const PROGRAM: &str = "/bench/hello";
/// How long a start and an end may take.
const START_MAX: Duration = Duration::from_secs(30);
const END_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// The state directory, beside what its image is built of.
const STATE: &str = "state";
const KEY: &str = "a-key-for-one-run-only";

/// An image store, made once and copied into every state directory.
pub(crate) struct Store {
    folder: TempDir,
}

impl Store {
    /// Builds the image, the host's own files and the static program, and one with a kernel where
    /// it is needed.
    pub(crate) fn build(options: &Options) -> Result<Self> {
        let folder = temporary()?;
        fs::copy(&options.hello, folder.path().join("hello"))
            .context("the static program is missing")?;
        let recipe = format!(
            "name = \"{IMAGE}\"\nbase = \"host\"\nfiles = \
             [{{ path = \"{PROGRAM}\", source = \"hello\", mode = 0o755 }}]\n"
        );
        build(options, folder.path(), &recipe)?;
        if options.wants(Part::Code) {
            let recipe =
                format!("name = \"{CODE_IMAGE}\"\nbase = \"host\"\npip = [\"{KERNEL}\"]\n");
            build(options, folder.path(), &recipe)?;
        }
        // Its launcher had settings of its own, and leaves when nobody needs it.
        let socket = folder.path().join(STATE).join("jail/launcher.sock");
        wait_for(|| !socket.exists());
        Ok(Self { folder })
    }

    /// A state directory that holds the image.
    pub(crate) fn state(&self) -> Result<TempDir> {
        let state = temporary()?;
        let copied = Command::new("cp")
            .arg("-a")
            .arg(self.folder.path().join(STATE).join("images"))
            .arg(state.path())
            .status()?;
        if !copied.success() {
            bail!("the image store cannot be copied");
        }
        Ok(state)
    }
}

/// Builds an image from a recipe in a folder, which also holds what that names, and the state
/// directory.
fn build(options: &Options, folder: &Path, recipe: &str) -> Result<()> {
    let file = folder.join("recipe.toml");
    fs::write(&file, recipe)?;
    let built = program(options)
        .args(["image", "build"])
        .arg(&file)
        .arg("--state-dir")
        .arg(folder.join(STATE))
        .output()
        .context("cannot start the program under test")?;
    if !built.status.success() {
        bail!(
            "the image cannot be built: {}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
    Ok(())
}

fn temporary() -> Result<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("barchan-bench-")
        .tempdir()?)
}

/// A server that runs.
pub(crate) struct Server {
    process: Child,
    address: String,
    state: TempDir,
}

impl Server {
    /// Starts one with so many spares, and waits until it listens.
    pub(crate) fn start(options: &Options, store: &Store, spares: usize) -> Result<Self> {
        Self::start_with(options, store, spares, "")
    }

    /// The same, with more settings.
    pub(crate) fn start_with(
        options: &Options,
        store: &Store,
        spares: usize,
        more: &str,
    ) -> Result<Self> {
        let state = store.state()?;
        let settings = state.path().join("settings.toml");
        // A real-time process may not enter a version 1 CPU group.
        let strict = !options.fifo;
        let text = format!(
            "[server]\nport = 0\napi_key = \"{KEY}\"\n[runtime]\nspares = {spares}\n\
             [limits]\nstrict = {strict}\n[log]\njson = true\nlevel = \"info\"\n{more}"
        );
        fs::write(&settings, text)?;
        let log = state.path().join("server.log");
        let process = program(options)
            .arg("serve")
            .arg("--config")
            .arg(&settings)
            .arg("--state-dir")
            .arg(state.path())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut server = Self {
            process,
            address: String::new(),
            state,
        };
        server.address = server.listening(&log)?;
        Ok(server)
    }

    fn listening(&mut self, log: &Path) -> Result<String> {
        let until = ticker::now() + START_MAX;
        while ticker::now() < until {
            let text = fs::read_to_string(log).unwrap_or_default();
            let lines = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(address) = lines.into_iter().find_map(|line| find(&line, "address")) {
                return Ok(address);
            }
            if self.process.try_wait()?.is_some() {
                bail!("the server ended at once: {text}");
            }
            std::thread::sleep(LOOK);
        }
        bail!("the server does not listen after {} s", START_MAX.as_secs())
    }

    /// Connects to it by TCP.
    pub(crate) fn tcp(&self) -> Result<Connection> {
        Ok(Connection::tcp(&self.address, KEY)?)
    }

    /// Connects to its Unix socket.
    pub(crate) fn unix(&self) -> Result<Connection> {
        Ok(Connection::unix(
            &self.state.path().join("server/api.sock"),
        )?)
    }

    /// Its `host:port` and key, for clients of their own.
    pub(crate) fn access(&self) -> (&str, &'static str) {
        (&self.address, KEY)
    }

    /// Its state directory.
    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends it and waits until its launcher is gone too.
    fn end(&mut self) {
        let family = host::descendants(self.pid());
        let pid = |it: u32| i32::try_from(it).ok().and_then(Pid::from_raw);
        if let Some(own) = pid(self.pid()) {
            let _ = kill_process(own, Signal::TERM);
        }
        let _ = self.process.wait();
        wait_for(|| family.iter().all(|it| !alive(it)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits, but not for ever.
pub(crate) fn wait_for(mut done: impl FnMut() -> bool) -> bool {
    let until = ticker::now() + END_MAX;
    while ticker::now() < until {
        if done() {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Whether this very process is still there.
fn alive(process: &host::Process) -> bool {
    let now = host::processes();
    now.iter()
        .any(|it| it.pid == process.pid && it.name == process.name)
}

/// The program under test, with nothing of the caller's environment that would change it.
fn program(options: &Options) -> Command {
    let mut command = Command::new(&options.barchan);
    for name in ["SERVER", "API_KEY", "STATE_DIR", "LOG"] {
        command.env_remove(format!("BARCHAN_{name}"));
    }
    command.env("BARCHAN_GUESTS_DIR", &options.guests);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The text under a name, wherever it stands.
fn find(value: &Value, name: &str) -> Option<String> {
    let map = value.as_object()?;
    let here = map.get(name).and_then(Value::as_str).map(str::to_owned);
    here.or_else(|| map.values().find_map(|inner| find(inner, name)))
}

/// Where guests are, as absolute paths.
pub(crate) fn guests(options: &Options) -> Result<(PathBuf, PathBuf)> {
    let folder = fs::canonicalize(&options.guests).context("the guests are missing")?;
    Ok((folder.join("barchan-jail"), folder.join("barchan-execd")))
}
