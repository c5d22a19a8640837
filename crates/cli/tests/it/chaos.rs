//! Server, launcher or both are killed at random moments while sandboxes are made and used. What
//! was acknowledged must be usable afterwards, or reported ended with its reason, and nothing may
//! leak.
//!
//! `BARCHAN_CHAOS_ROUNDS` sets the number of rounds; `make chaos` runs 20.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use barchan_client::{Client, Filter, Limits, Output, Target};
use barchan_testkit::{leftovers, seed::Seed};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{CreateSandbox, Image};
use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Child;

use crate::program::program;
use crate::whole::listener;

/// Sandboxes that are made and used at once.
const AT_ONCE: usize = 50;
/// The kill comes within this time.
const KILL_WITHIN: Duration = Duration::from_millis(600);
/// Longest wait for what must happen soon.
const SOON: Duration = Duration::from_secs(30);

/// What is killed in a round.
const VICTIMS: [&[&str]; 3] = [&["server"], &["launcher"], &["server", "launcher"]];

/// A state directory and its server, which comes and goes.
struct World {
    home: TempDir,
    server: Option<Child>,
}

impl World {
    fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    fn pid_of(&self, who: &str) -> Option<Pid> {
        let socket = if who == "server" {
            "api.sock"
        } else {
            "jail/launcher.sock"
        };
        listener(&self.state().join(socket))
    }

    fn client(&self) -> Client {
        let limits = Limits {
            connect_ms: 5_000,
            answer_ms: 20_000,
            silence_ms: 20_000,
        };
        Client::new(Target::Unix(self.state().join("api.sock")), None, limits).unwrap()
    }

    async fn start(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.home.path().join("server.log"))
            .unwrap();
        let mut command = program(self.home.path());
        command.args(["serve", "--private"]).stderr(log);
        self.server = Some(command.spawn().unwrap());
        let client = self.client();
        until("the server answers", async || client.health().await.is_ok()).await;
    }
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(SOON, waiting).await.is_ok(),
        "not within {SOON:?}: {what}"
    );
}

fn request() -> CreateSandbox {
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
async fn echo(client: &Client, id: &SandboxId) -> Option<String> {
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

/// Makes and uses sandboxes until the kill; the ids that were acknowledged.
async fn storm(world: &World, victims: &[&str], after: Duration) -> Vec<SandboxId> {
    let known = Mutex::new(Vec::new());
    let client = world.client();
    let users = join_all((0..AT_ONCE).map(|_| async {
        let Ok(made) = client.create(&request()).await else {
            return;
        };
        known.lock().unwrap().push(made.id.clone());
        let _ = echo(&client, &made.id).await;
    }));
    let pids: Vec<_> = victims
        .iter()
        .map(|who| world.pid_of(who).unwrap())
        .collect();
    let killing = async {
        tokio::time::sleep(after).await;
        for pid in pids {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    tokio::join!(users, killing);
    known.into_inner().unwrap()
}

/// Every acknowledged sandbox is usable, or ended with a reason.
async fn assert_known(client: &Client, ids: &[SandboxId]) {
    for id in ids {
        let found = client.get(id).await;
        let found = found.unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
        let state = found.status.state.as_str().to_owned();
        if state == "Running" {
            assert_eq!(
                echo(client, id).await.as_deref(),
                Some("alive\n"),
                "{id} {found:?}"
            );
        } else {
            assert!(
                ["Failed", "Terminated"].contains(&state.as_str()),
                "{found:?}"
            );
            assert!(found.status.reason.is_some(), "{found:?}");
        }
    }
}

fn log_of(home: &Path) -> String {
    let text = std::fs::read_to_string(home.join("server.log")).unwrap_or_default();
    let launcher = std::fs::read_to_string(home.join("state/jail/launcher.log"));
    format!("{text}\nlauncher: {}", launcher.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_leaks() {
    let rounds = std::env::var_os("BARCHAN_CHAOS_ROUNDS");
    let rounds = rounds
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(3);
    let mut seed = Seed::from_env();
    let mut world = World {
        home: TempDir::new().unwrap(),
        server: None,
    };
    world.start().await;
    for round in 0..rounds {
        let victims = VICTIMS[round % VICTIMS.len()];
        let after = seed.time(KILL_WITHIN);
        let known = storm(&world, victims, after).await;
        println!(
            "round {round}: {victims:?} after {after:?}, {} acknowledged",
            known.len()
        );
        if victims.contains(&"server") {
            world.server.take().unwrap().wait().await.unwrap();
            world.start().await;
        }
        let client = world.client();
        until("a sandbox can be made", async || {
            client.create(&request()).await.is_ok()
        })
        .await;
        assert_known(&client, &known).await;
        let all = client.list(&Filter::default()).await.unwrap();
        join_all(all.iter().map(|sandbox| client.delete(&sandbox.id))).await;
        until("all are deleted", async || {
            client
                .list(&Filter::default())
                .await
                .is_ok_and(|left| left.is_empty())
        })
        .await;
    }
    let launcher = world.pid_of("launcher");
    let mut server = world.server.take().unwrap();
    let _ = kill_process(
        Pid::from_raw(server.id().unwrap() as i32).unwrap(),
        Signal::TERM,
    );
    server.wait().await.unwrap();
    if let Some(launcher) = launcher {
        until("the launcher leaves", async || {
            rustix::process::test_kill_process(launcher).is_err()
        })
        .await;
    }
    let left = leftovers::of(&world.state());
    assert!(left.is_empty(), "{left:#?}\n{}", log_of(world.home.path()));
}
