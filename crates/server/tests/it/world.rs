//! A server, the fake runtime below it, and one way to call it.

mod call;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use barchan_daemon::clock::{Clock, Hand, Now};
use barchan_daemon::shutdown::Shutdown;
use barchan_runtime::Runtime as Sandboxes;
use barchan_runtime::fake::{Fake, Guest};
use barchan_server::config::{SettingsError, Surroundings};
use barchan_server::{App, Source, StartError};
use barchan_wire::id::SandboxId;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub(crate) use call::{Answer, Call, together};

/// Longest time for anything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server and all around it.
pub(crate) struct World {
    /// What is below the server, unless the set names something else.
    pub(crate) fake: Arc<Fake>,
    sandboxes: Arc<dyn Sandboxes>,
    pub(crate) hand: Hand,
    clock: Clock,
    home: tempfile::TempDir,
    /// What stands in the settings file, as it were.
    settings: Arc<Mutex<String>>,
    server: Option<Server>,
}

/// A running server, on an async runtime of its own so that it can die alone.
struct Server {
    runtime: Runtime,
    address: SocketAddr,
    socket: PathBuf,
    shutdown: Shutdown,
    running: JoinHandle<()>,
}

impl World {
    /// A server with the default settings and an echo behind every port.
    pub(crate) async fn new() -> Self {
        Self::with(&Set::default()).await
    }

    pub(crate) async fn with(set: &Set) -> Self {
        let home = tempfile::tempdir().unwrap();
        let sockets = home.path().join("s");
        std::fs::create_dir(&sockets).unwrap();
        let mut fake = Fake::new(&sockets);
        if let Some(guest) = &set.guest {
            fake = fake.with_guest(Arc::clone(guest));
        }
        if let Some(capabilities) = &set.capabilities {
            fake = fake.with_capabilities(capabilities.clone());
        }
        if let Some(egress) = &set.egress {
            fake = fake.with_egress(egress);
        }
        let (clock, hand) = Clock::manual(Timestamp::from_second(1_900_000_000).unwrap());
        let settings = Arc::new(Mutex::new(set.settings.to_owned()));
        let fake = Arc::new(fake);
        let below = set.sandboxes.clone();
        let sandboxes = below.unwrap_or_else(|| Arc::clone(&fake) as Arc<dyn Sandboxes>);
        let mut world = Self {
            fake,
            sandboxes,
            hand,
            clock,
            home,
            settings,
            server: None,
        };
        world.start().await.unwrap();
        world
    }

    /// Starts the server, with the state that the last one left.
    pub(crate) async fn start(&mut self) -> Result<(), StartError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let started = runtime.spawn(self.app()).await.unwrap();
        let app = match started {
            Ok(app) => app,
            Err(error) => {
                drop_off(runtime).await;
                return Err(error);
            }
        };
        let address = app.address().unwrap();
        let socket = app.socket().to_owned();
        let shutdown = app.shutdown();
        let running = runtime.spawn(app.run());
        self.server = Some(Server {
            runtime,
            address,
            socket,
            shutdown,
            running,
        });
        Ok(())
    }

    /// A server that is being started on this world's state directory.
    pub(crate) fn app(&self) -> impl Future<Output = Result<App, StartError>> + use<> {
        self.app_on(0)
    }

    /// The same, on a port.
    pub(crate) fn app_on(
        &self,
        port: u16,
    ) -> impl Future<Output = Result<App, StartError>> + use<> {
        let (text, state_dir) = (Arc::clone(&self.settings), self.state_dir());
        let read = move || -> Result<_, SettingsError> {
            let mut loaded = Surroundings::text(&text.lock().unwrap()).read()?;
            loaded.settings.server.port = port;
            loaded.settings.store.state_dir = Some(state_dir.clone());
            Ok(loaded)
        };
        let settings = read().map(|loaded| loaded.settings).unwrap();
        let clock = self.clock.clone();
        let sandboxes = Arc::clone(&self.sandboxes);
        async move {
            let make = |_| async { Ok::<_, String>(sandboxes) };
            App::start(&settings, Source::new(read, |_| {}), clock, make).await
        }
    }

    /// Replaces what stands in the settings file; the server does not know yet.
    pub(crate) fn write(&self, settings: &str) {
        *self.settings.lock().unwrap() = settings.to_owned();
    }

    /// Takes the server away in the middle of whatever it does, as SIGKILL would.
    pub(crate) async fn kill(&mut self) {
        drop_off(self.server.take().unwrap().runtime).await;
    }

    /// Stops the server in order.
    pub(crate) async fn stop(&mut self) {
        let server = self.server.take().unwrap();
        server.shutdown.begin();
        tokio::time::timeout(PATIENCE, server.running)
            .await
            .unwrap()
            .unwrap();
        drop_off(server.runtime).await;
    }

    /// Returns once the server stopped by itself.
    pub(crate) async fn stopped(&mut self) {
        let server = self.server.take().unwrap();
        tokio::time::timeout(PATIENCE, server.running)
            .await
            .unwrap()
            .unwrap();
        drop_off(server.runtime).await;
    }

    /// The time that the server sees.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Every file of the state directory, by its path there.
    pub(crate) fn state_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut folders = vec![self.state_dir()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.metadata().unwrap() {
                    found if found.is_dir() => folders.push(path),
                    found if found.is_file() => {
                        let bytes = std::fs::read(&path).unwrap();
                        files.push((path, bytes));
                    }
                    _ => {}
                }
            }
        }
        files
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().address
    }

    pub(crate) fn unix_socket(&self) -> PathBuf {
        self.server.as_ref().unwrap().socket.clone()
    }

    pub(crate) fn key(&self) -> String {
        let file = self.state_dir().join("server/api_key");
        std::fs::read_to_string(file)
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// A call over TCP with the key.
    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        self.bare(method, path)
            .header("open-sandbox-api-key", &self.key())
    }

    /// A call over TCP without any credential.
    pub(crate) fn bare(&self, method: &str, path: &str) -> Call {
        Call::tcp(self.address(), method, path)
    }

    /// A sandbox of the default request with some fields replaced.
    pub(crate) async fn create(&self, changes: &Value) -> Answer {
        self.call("POST", "/v1/sandboxes")
            .json(&request(changes))
            .send()
            .await
    }

    /// A running sandbox.
    pub(crate) async fn sandbox(&self) -> SandboxId {
        self.sandbox_with(&json!({})).await
    }

    pub(crate) async fn sandbox_with(&self, changes: &Value) -> SandboxId {
        let answer = self.create(changes).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn get(&self, id: &SandboxId) -> Answer {
        self.call("GET", &format!("/v1/sandboxes/{id}"))
            .send()
            .await
    }

    /// The state that callers see; `gone` when there is none.
    pub(crate) async fn state(&self, id: &SandboxId) -> String {
        let answer = self.get(id).await;
        if answer.status == 404 {
            return "gone".to_owned();
        }
        answer.json()["status"]["state"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) async fn await_state(&self, id: &SandboxId, state: &str) {
        let what = format!("{id} to be {state}");
        until(&what, async || self.state(id).await == state).await;
    }

    /// Waits until the runtime has no sandbox any more.
    pub(crate) async fn await_nothing_left(&self) {
        until("all sandboxes to be removed", async || {
            self.fake.plans().is_empty()
        })
        .await;
    }

    /// A call to a port of a sandbox, with the sandbox's token alone.
    pub(crate) async fn inside(&self, id: &SandboxId, port: u16, method: &str, rest: &str) -> Call {
        let (name, token) = self.token(id).await;
        let path = format!("/v1/sandboxes/{id}/proxy/{port}{rest}");
        self.bare(method, &path).header(&name, &token)
    }

    /// The header that an endpoint tells its callers to send.
    pub(crate) async fn token(&self, id: &SandboxId) -> (String, String) {
        let path = format!("/v1/sandboxes/{id}/endpoints/44772");
        let answer = self.call("GET", &path).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let headers = answer.json()["headers"].clone();
        let (name, value) = headers.as_object().unwrap().iter().next().unwrap();
        (name.clone(), value.as_str().unwrap().to_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.runtime.shutdown_background();
        }
    }
}

/// What differs from the usual in a world.
#[derive(Default)]
pub(crate) struct Set {
    pub(crate) settings: &'static str,
    pub(crate) guest: Option<Guest>,
    pub(crate) capabilities: Option<barchan_runtime::Capabilities>,
    /// What is below the server instead of a fake.
    pub(crate) sandboxes: Option<Arc<dyn Sandboxes>>,
    /// The socket of what guards what sandboxes send out.
    pub(crate) egress: Option<PathBuf>,
}

impl Set {
    pub(crate) fn settings(settings: &'static str) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    pub(crate) fn guest(guest: Guest) -> Self {
        Self {
            guest: Some(guest),
            ..Self::default()
        }
    }
}

/// The default request with some fields replaced; null takes a field away.
pub(crate) fn request(changes: &Value) -> Value {
    let mut body = json!({
        "image": {"uri": "host"},
        "timeout": 600,
        "resourceLimits": {"cpu": "1", "memory": "2Gi"},
        "entrypoint": ["tail", "-f", "/dev/null"],
        "secureAccess": false,
    });
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value.clone();
        }
    }
    body
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("waited for {what}"));
}

/// An async runtime may not be dropped inside another one.
async fn drop_off(runtime: Runtime) {
    tokio::task::spawn_blocking(move || drop(runtime))
        .await
        .unwrap();
}
