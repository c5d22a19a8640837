//! The sandboxes of a fake runtime.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use barchan_wire::id::{SandboxId, SnapshotId};
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::Guest;
use super::layers::{History, Telling};
use super::snapshots::Kept;
use crate::{
    Capabilities, EndReason, ErrorKind, Limits, NamedVolume, Observed, Phase, Plan, RuntimeError,
};

/// All there is.
pub(super) struct World {
    pub(super) sandboxes: BTreeMap<SandboxId, Sandbox>,
    pub(super) images: BTreeSet<String>,
    /// That were warmed up.
    pub(super) warmed: BTreeSet<SandboxId>,
    /// In which something is at work.
    pub(super) busy: BTreeSet<SandboxId>,
    /// How what it tells of layers ends.
    pub(super) telling: Telling,
    pub(super) failures: HashMap<&'static str, (ErrorKind, usize)>,
    /// Named volumes by their names.
    pub(super) volumes: BTreeMap<String, NamedVolume>,
    /// What the sandboxes were made of of which there are snapshots.
    pub(super) snapshots: BTreeMap<SnapshotId, Kept>,
    /// The layers of sandboxes.
    pub(super) layers: BTreeMap<SandboxId, History>,
}

/// One sandbox. When it is dropped, its program stops and its socket goes.
pub(super) struct Sandbox {
    pub(super) plan: Plan,
    pub(super) observed: Observed,
    pub(super) log: Vec<u8>,
    pub(super) socket: PathBuf,
    running: watch::Sender<bool>,
    program: Option<AbortHandle>,
}

impl World {
    pub(super) fn new(image: &str) -> Self {
        Self {
            sandboxes: BTreeMap::new(),
            images: BTreeSet::from([image.to_owned()]),
            warmed: BTreeSet::new(),
            busy: BTreeSet::new(),
            telling: Telling::Whole,
            failures: HashMap::new(),
            volumes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            layers: BTreeMap::new(),
        }
    }

    pub(super) fn maybe_fail(&mut self, verb: &'static str) -> Result<(), RuntimeError> {
        let Some((kind, left)) = self.failures.get_mut(verb).filter(|(_, left)| *left > 0) else {
            return Ok(());
        };
        *left -= 1;
        Err(RuntimeError::new(
            *kind,
            format!("the fake was told to fail at {verb}"),
        ))
    }

    pub(super) fn get(&self, id: &SandboxId) -> Result<&Sandbox, RuntimeError> {
        self.sandboxes.get(id).ok_or_else(|| unknown(id))
    }

    pub(super) fn make(
        &mut self,
        plan: Plan,
        socket: PathBuf,
        unenforced: Vec<String>,
        log: &[u8],
        guest: Guest,
        handle: &Handle,
    ) -> Result<Observed, RuntimeError> {
        let (program, running) = begin(&socket, guest, handle)?;
        let observed = Observed {
            id: plan.id.clone(),
            phase: Phase::Running,
            unenforced,
            image_digest: format!("sha256:{:064x}", plan.image.len()),
        };
        let sandbox = Sandbox {
            observed: observed.clone(),
            log: log.to_vec(),
            socket,
            running,
            program: Some(program),
            plan,
        };
        self.sandboxes.insert(sandbox.plan.id.clone(), sandbox);
        Ok(observed)
    }

    /// Ends a living sandbox; its record and log stay.
    pub(super) fn end(&mut self, id: &SandboxId, reason: EndReason) -> Option<Observed> {
        let sandbox = self.sandboxes.get_mut(id)?;
        if matches!(sandbox.observed.phase, Phase::Ended(_)) {
            return None;
        }
        sandbox.stop();
        sandbox.observed.phase = Phase::Ended(reason);
        Some(sandbox.observed.clone())
    }

    /// Leads a sandbox from one phase to another; being there already is fine.
    pub(super) fn turn(
        &mut self,
        id: &SandboxId,
        from: &Phase,
        to: Phase,
    ) -> Result<Observed, RuntimeError> {
        let sandbox = self.sandboxes.get_mut(id).ok_or_else(|| unknown(id))?;
        if sandbox.observed.phase != *from && sandbox.observed.phase != to {
            let message = format!("sandbox {id} is {:?}, not {from:?}", sandbox.observed.phase);
            return Err(RuntimeError::new(ErrorKind::Conflict, message));
        }
        sandbox.running.send_replace(to == Phase::Running);
        sandbox.observed.phase = to;
        Ok(sandbox.observed.clone())
    }

    /// Pauses a sandbox to disk; being there already is fine.
    pub(super) fn park(&mut self, id: &SandboxId, note: String) -> Result<Observed, RuntimeError> {
        if self.get(id)?.observed.phase != Phase::Parked {
            self.turn(id, &Phase::Running, Phase::Running)?;
            self.add_layer(id, note);
        }
        let sandbox = self.sandboxes.get_mut(id).ok_or_else(|| unknown(id))?;
        sandbox.stop();
        sandbox.observed.phase = Phase::Parked;
        Ok(sandbox.observed.clone())
    }

    /// Starts a sandbox anew that is paused to disk.
    pub(super) fn unpark(
        &mut self,
        id: &SandboxId,
        guest: Guest,
        handle: &Handle,
    ) -> Result<Observed, RuntimeError> {
        let sandbox = self.sandboxes.get_mut(id).ok_or_else(|| unknown(id))?;
        let (program, running) = begin(&sandbox.socket, guest, handle)?;
        (sandbox.program, sandbox.running) = (Some(program), running);
        sandbox.observed.phase = Phase::Running;
        Ok(sandbox.observed.clone())
    }
}

/// Begins to answer on a socket, and says how it is stopped.
fn begin(
    socket: &Path,
    guest: Guest,
    handle: &Handle,
) -> Result<(AbortHandle, watch::Sender<bool>), RuntimeError> {
    let _context = handle.enter();
    let listener = UnixListener::bind(socket).map_err(|error: io::Error| {
        let message = format!("cannot listen on {}: {error}", socket.display());
        RuntimeError::new(ErrorKind::StartFailed, message)
    })?;
    let (running, is_running) = watch::channel(true);
    let program = handle
        .spawn(serve(listener, guest, is_running))
        .abort_handle();
    Ok((program, running))
}

impl Sandbox {
    fn stop(&mut self) {
        if let Some(program) = self.program.take() {
            program.abort();
            // It may be gone with its directory.
            let _ = fs::remove_file(&self.socket);
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Takes connections while the sandbox runs; its connections end with it.
async fn serve(listener: UnixListener, guest: Guest, mut is_running: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while is_running.wait_for(|running| *running).await.is_ok() {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        connections.spawn(guest(stream));
        while connections.try_join_next().is_some() {}
    }
}

/// Which of these limits the host cannot enforce.
pub(super) fn unenforced(limits: &Limits, host: &Capabilities) -> Vec<String> {
    [
        ("cpu", limits.cpu_millis, host.limit_cpu),
        ("memory", limits.memory_bytes, host.limit_memory),
        ("pids", limits.pids, host.limit_pids),
        ("disk", limits.disk_bytes, host.limit_disk),
    ]
    .into_iter()
    .filter(|(_, limit, can)| limit.is_some() && !can)
    .map(|(name, _, _)| name.to_owned())
    .collect()
}

fn unknown(id: &SandboxId) -> RuntimeError {
    RuntimeError::new(ErrorKind::NotFound, format!("there is no sandbox {id}"))
}
