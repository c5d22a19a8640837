//! A native runtime of its own for each test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::image::Aliases;
use barchan_runtime::native::{Native, Settings};
use barchan_runtime::{EndReason, Limits, Observed, Phase, Plan, Runtime, RuntimeError};
use barchan_testkit::guests;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::traces::Traces;

/// Longest time for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime with a state directory of its own.
pub(crate) struct World {
    pub(crate) native: Arc<Native>,
    pub(crate) state: TempDir,
    traces: Traces,
    task: JoinSet<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap()).await
    }

    /// A runtime with this state directory.
    pub(crate) async fn at(state: TempDir) -> Self {
        Self::with(state, Vec::new(), PathBuf::from("/dev")).await
    }

    /// One with a launcher that was started with other arguments than servers give.
    pub(crate) async fn of_launcher(arguments: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let launcher = Command::new(guests::program("barchan-jail"))
            .arg("--state")
            .arg(state.path())
            .arg("--execd")
            .arg(guests::program("barchan-execd"))
            .args(["--disk-bytes", &(512_u64 << 20).to_string()])
            .args(arguments)
            .spawn();
        let mut launcher = launcher.unwrap();
        let pid = launcher.id();
        // Or it would still be seen after its end, which comes when nobody needs it.
        std::thread::spawn(move || launcher.wait());
        let socket = state.path().join("jail/launcher.sock");
        let deadline = Instant::now() + PATIENCE;
        while !socket.exists() {
            assert!(Instant::now() < deadline, "the launcher does not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let world = Self::at(state).await;
        assert_eq!(world.native.launcher_pid(), pid);
        world
    }

    /// One whose sandboxes may mount in these folders, on a host with the devices of that one.
    pub(crate) async fn with(state: TempDir, host_paths: Vec<PathBuf>, devices: PathBuf) -> Self {
        let traces = Traces::before(state.path());
        let settings = settings(state.path(), host_paths, devices);
        let (native, listening) = Native::start(settings).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(listening);
        Self {
            native,
            state,
            traces,
            task,
        }
    }

    /// Starts anew on the same state directory, as a server does with other folders of the host.
    pub(crate) async fn start_anew(&mut self, host_paths: Vec<PathBuf>) {
        self.traces.note(self.native.launcher_pid());
        self.task.shutdown().await;
        let settings = settings(self.state.path(), host_paths, PathBuf::from("/dev"));
        let (native, listening) = Native::start(settings).await.unwrap();
        self.task.spawn(listening);
        self.native = native;
    }

    /// Runs a shell script as a sandbox's entrypoint to its end.
    pub(crate) async fn run(&self, script: &str, limits: Limits) -> (EndReason, String) {
        self.run_plan(plan("host", &["/bin/sh", "-c", script], limits))
            .await
    }

    /// Runs a sandbox to its end.
    pub(crate) async fn run_plan(&self, plan: Plan) -> (EndReason, String) {
        self.try_plan(plan).await.unwrap()
    }

    /// Runs a sandbox to its end, if it comes about.
    pub(crate) async fn try_plan(&self, plan: Plan) -> Result<(EndReason, String), RuntimeError> {
        let mut changes = self.native.watch();
        let id = plan.id.clone();
        self.native.create(plan).await?;
        let ended = tokio::time::timeout(PATIENCE, async {
            loop {
                let Observed {
                    id: changed, phase, ..
                } = changes.recv().await.unwrap();
                if let (true, Phase::Ended(reason)) = (changed == id, phase) {
                    return reason;
                }
            }
        });
        let reason = ended.await.expect("the sandbox does not end");
        let log = self.native.logs(&id).await.unwrap();
        self.native.delete(&id).await.unwrap();
        Ok((reason, String::from_utf8(log).unwrap()))
    }

    pub(crate) async fn create(&self, image: &str) -> Result<Observed, RuntimeError> {
        self.native
            .create(plan(image, &["tail", "-f", "/dev/null"], Limits::default()))
            .await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let native = Arc::clone(&self.native);
        self.traces.note(native.launcher_pid());
        let traces = &self.traces;
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async move {
                let _ = native.close().await;
                // A test that failed has said enough.
                if !std::thread::panicking() {
                    traces.vanish().await;
                }
            });
        });
    }
}

pub(crate) fn settings(state: &Path, host_paths: Vec<PathBuf>, devices: PathBuf) -> Settings {
    Settings {
        state: state.to_owned(),
        jail: guests::program("barchan-jail"),
        execd: guests::program("barchan-execd"),
        egress: Some(guests::program("barchan-egress")),
        blanks: 2,
        disk_bytes: 256 << 20,
        aliases: Aliases::default(),
        host_paths: Some(host_paths),
        devices,
    }
}

pub(crate) fn plan(image: &str, entrypoint: &[&str], limits: Limits) -> Plan {
    Plan {
        id: uuid::Uuid::new_v4().to_string().parse().unwrap(),
        image: image.to_owned(),
        snapshot: None,
        from: None,
        entrypoint: entrypoint.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::new(),
        limits,
        pre_start: None,
        periodic: Vec::new(),
        volumes: Vec::new(),
        gpus: None,
        trust: None,
    }
}
