//! A native runtime of its own for each test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use barchan_runtime::image::Aliases;
use barchan_runtime::native::{Native, Settings};
use barchan_runtime::{EndReason, Limits, Observed, Phase, Plan, Runtime, RuntimeError};
use barchan_testkit::guests;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::traces::Traces;

/// Longest time for anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime with a state directory of its own.
pub(crate) struct World {
    pub(crate) native: Arc<Native>,
    pub(crate) state: TempDir,
    traces: Traces,
    _task: JoinSet<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap()).await
    }

    /// A runtime with this state directory.
    pub(crate) async fn at(state: TempDir) -> Self {
        let traces = Traces::before(state.path());
        let settings = Settings {
            state: state.path().to_owned(),
            jail: guests::program("barchan-jail"),
            execd: guests::program("barchan-execd"),
            blanks: 2,
            disk_bytes: 256 << 20,
            aliases: Aliases::default(),
        };
        let (native, listening) = Native::start(settings).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(listening);
        Self {
            native,
            state,
            traces,
            _task: task,
        }
    }

    /// Runs a shell script as a sandbox's entrypoint to its end.
    pub(crate) async fn run(&self, script: &str, limits: Limits) -> (EndReason, String) {
        self.run_plan(plan("host", &["/bin/sh", "-c", script], limits))
            .await
    }

    /// Runs a sandbox to its end.
    pub(crate) async fn run_plan(&self, plan: Plan) -> (EndReason, String) {
        let mut changes = self.native.watch();
        let id = plan.id.clone();
        self.native.create(plan).await.unwrap();
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
        (reason, String::from_utf8(log).unwrap())
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

pub(crate) fn plan(image: &str, entrypoint: &[&str], limits: Limits) -> Plan {
    Plan {
        id: uuid::Uuid::new_v4().to_string().parse().unwrap(),
        image: image.to_owned(),
        entrypoint: entrypoint.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::new(),
        limits,
    }
}
