//! A state directory whose server comes and goes, and what callers do with it.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use barchan_client::{Client, Limits, Output, Target};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{CreateSandbox, Image};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::program::program;
use crate::whole::listener;

/// Longest wait for what must happen soon.
const SOON: Duration = Duration::from_secs(30);

/// A state directory and its server, which comes and goes.
pub(crate) struct World {
    home: TempDir,
    server: Option<Child>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let mut world = Self {
            home: TempDir::new().unwrap(),
            server: None,
        };
        world.start().await;
        world
    }

    /// A server with a settings file.
    pub(crate) async fn with_settings(text: &str) -> Self {
        let mut world = Self {
            home: TempDir::new().unwrap(),
            server: None,
        };
        world.write_settings(text);
        world.start().await;
        world
    }

    /// A server that has much to say, and logs on a disk that is full.
    pub(crate) async fn with_full_log() -> Self {
        let mut world = Self {
            home: TempDir::new().unwrap(),
            server: None,
        };
        for log in ["server.log", "state/jail/launcher.log"] {
            let log = world.home.path().join(log);
            let folder = log.parent().unwrap();
            let mut private = std::fs::DirBuilder::new();
            private.recursive(true).mode(0o700).create(folder).unwrap();
            std::os::unix::fs::symlink("/dev/full", log).unwrap();
        }
        world.write_settings("[log]\nlevel = \"debug\"\n");
        world.start().await;
        world
    }

    /// Replaces the settings file; the server does not know yet.
    pub(crate) fn write_settings(&self, text: &str) {
        std::fs::write(self.settings(), text).unwrap();
    }

    /// The settings file, if there is one.
    pub(crate) fn settings(&self) -> PathBuf {
        self.home.path().join("barchan.toml")
    }

    /// A command of the program, about to be given its arguments.
    pub(crate) fn command(&self) -> Command {
        program(self.home.path())
    }

    /// Waits for the end of a server that was killed, and starts the next.
    pub(crate) async fn restart(&mut self) {
        self.server.take().unwrap().wait().await.unwrap();
        self.start().await;
    }

    /// Ends the server, and waits for the launcher, which leaves when nobody needs it.
    pub(crate) async fn stop(&mut self) {
        let launcher = self.pid_of("launcher");
        let mut server = self.server.take().unwrap();
        let pid = Pid::from_raw(server.id().unwrap().cast_signed()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        server.wait().await.unwrap();
        if let Some(launcher) = launcher {
            until("the launcher leaves", async || {
                test_kill_process(launcher).is_err()
            })
            .await;
        }
    }

    /// What server and launcher said.
    pub(crate) fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        format!(
            "{}\nlauncher: {}",
            read("server.log"),
            read("state/jail/launcher.log")
        )
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub(crate) fn pid_of(&self, who: &str) -> Option<Pid> {
        let socket = if who == "server" {
            "server/api.sock"
        } else {
            "jail/launcher.sock"
        };
        listener(&self.state().join(socket))
    }

    pub(crate) fn client(&self) -> Client {
        let limits = Limits {
            connect_ms: 5_000,
            answer_ms: 20_000,
            silence_ms: 20_000,
        };
        Client::new(
            Target::Unix(self.state().join("server/api.sock")),
            None,
            limits,
        )
        .unwrap()
    }

    async fn start(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.home.path().join("server.log"))
            .unwrap();
        let mut command = program(self.home.path());
        command.args(["serve", "--private"]).stderr(log);
        if self.settings().exists() {
            command.arg("--config").arg(self.settings());
        }
        self.server = Some(command.spawn().unwrap());
        let client = self.client();
        let answers = holds(async || client.health().await.is_ok()).await;
        assert!(answers, "the server does not answer:\n{}", self.log());
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, it: impl AsyncFn() -> bool) {
    assert!(holds(it).await, "not within {SOON:?}: {what}");
}

/// Whether something holds soon.
async fn holds(it: impl AsyncFn() -> bool) -> bool {
    let waiting = async {
        while !it().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.is_ok()
}

pub(crate) fn request() -> CreateSandbox {
    CreateSandbox {
        image: Some(Image {
            uri: "host".to_owned(),
            auth: None,
        }),
        entrypoint: Some(["tail", "-f", "/dev/null"].map(str::to_owned).to_vec()),
        resource_limits: Some([("memory".to_owned(), "256Mi".to_owned())].into()),
        timeout_s: Some(600),
        ..CreateSandbox::default()
    }
}

/// What `echo` says in a sandbox, if it can be reached.
pub(crate) async fn echo(client: &Client, id: &SandboxId) -> Option<String> {
    let command = Some("echo alive".to_owned());
    let request = CommandRequest {
        command,
        ..CommandRequest::default()
    };
    let mut running = client.sandbox(id).run(&request).await.ok()?;
    let mut said = String::new();
    while let Some(output) = running.next().await.ok()? {
        if let Output::Stdout(text) = output {
            said.push_str(&text);
        }
    }
    Some(said)
}
