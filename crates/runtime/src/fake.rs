//! A runtime without processes: it keeps the contract strictly, answers on real sockets, and does
//! at a test's word what hosts do at the worst moment.

mod layers;
mod ping;
mod script;
mod snapshots;
mod volumes;
mod world;

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use barchan_wire::id::{SandboxId, SnapshotId};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};

use crate::{
    Capabilities, CompareOrder, Comparison, EXECD_PORT, EndReason, ErrorKind, Export, ExportOrder,
    ImportOrder, Imported, Layer, NamedVolume, Observed, Pause, Phase, Pieces, Plan, Runtime,
    RuntimeError, SealOrder, Sealed, Snapshot, SnapshotOrder, Upstream,
};
use layers::Telling;
use world::World;

/// What stands behind a sandbox's socket: called with every connection.
pub type Guest = Arc<dyn Fn(UnixStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Most changes that a slow watcher may be behind.
const CHANGES_MAX: usize = 256;

/// The fake runtime. It lives on the async runtime it was made on, so that a server on another one
/// can die without it.
pub struct Fake {
    world: Arc<Mutex<World>>,
    changes: broadcast::Sender<Observed>,
    open: watch::Sender<bool>,
    /// Whether snapshots come to their end.
    copying: watch::Sender<bool>,
    /// Whether it is told that pauses are done.
    pausing: watch::Sender<bool>,
    capabilities: Capabilities,
    egress: Option<PathBuf>,
    guest: Guest,
    home: PathBuf,
    handle: Handle,
}

impl Fake {
    /// A fake that enforces everything, knows the image `host`, keeps its sockets in a directory
    /// and answers every request inside a sandbox with 200 and nothing.
    ///
    /// # Panics
    /// Outside of an async runtime.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        let all = Capabilities {
            runtime: "fake".into(),
            limit_cpu: true,
            limit_memory: true,
            limit_pids: true,
            limit_disk: true,
            pause: true,
            pause_to_disk: true,
            limit_volume: true,
            snapshot: true,
            layers: true,
            gpus: 0,
            network: false,
        };
        Self {
            world: Arc::new(Mutex::new(World::new("host"))),
            changes: broadcast::Sender::new(CHANGES_MAX),
            open: watch::Sender::new(true),
            copying: watch::Sender::new(true),
            pausing: watch::Sender::new(true),
            capabilities: all,
            egress: None,
            guest: Arc::new(|stream| Box::pin(ping::answer(stream))),
            home: home.to_owned(),
            handle: Handle::current(),
        }
    }

    /// Puts another program behind the sockets.
    #[must_use]
    pub fn with_guest(mut self, guest: Guest) -> Self {
        self.guest = guest;
        self
    }

    /// Changes what the host can enforce.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Has something at this socket guard what sandboxes send out.
    #[must_use]
    pub fn with_egress(mut self, socket: &Path) -> Self {
        self.egress = Some(socket.to_owned());
        self
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(self, name: &str) -> Self {
        self.lock().images.insert(name.to_owned());
        self
    }

    /// Ends a sandbox, as if its entrypoint or the host had.
    pub fn end(&self, id: &SandboxId, reason: EndReason) {
        let ended = self.lock().end(id, reason);
        if let Some(observed) = ended {
            // Nobody watching is no fault.
            let _ = self.changes.send(observed);
        }
    }

    /// Takes a sandbox away without a word, as someone with root on the host may.
    pub fn vanish(&self, id: &SandboxId) {
        self.lock().sandboxes.remove(id);
    }

    /// The next so many calls of this verb fail in this way.
    pub fn fail(&self, verb: &'static str, kind: ErrorKind, times: usize) {
        self.lock().failures.insert(verb, (kind, times));
    }

    /// Lets whatever is told of layers from now on break off before its end.
    pub fn break_off(&self) {
        self.lock().telling = Telling::BreaksOff;
    }

    /// Lets whatever is told of layers from now on come to no end.
    pub fn hold_comparisons(&self) {
        self.lock().telling = Telling::Held(Vec::new());
    }

    /// Whether a sandbox was warmed up.
    #[must_use]
    pub fn is_warm(&self, id: &SandboxId) -> bool {
        self.lock().warmed.contains(id)
    }

    /// Whether something is at work in a sandbox from now on.
    pub fn set_busy(&self, id: &SandboxId, is_busy: bool) {
        let mut world = self.lock();
        if is_busy {
            world.busy.insert(id.clone());
        } else {
            world.busy.remove(id);
        }
    }

    /// Creates wait from now on (`false`), or go on (`true`).
    pub fn let_creates_through(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// Pauses are not told from now on (`false`) though they are done, or are (`true`).
    pub fn let_pauses_through(&self, open: bool) {
        self.pausing.send_replace(open);
    }

    /// Snapshots wait from now on (`false`), or come to their end (`true`).
    pub fn let_snapshots_through(&self, open: bool) {
        self.copying.send_replace(open);
    }

    /// The plans of all sandboxes that there are.
    #[must_use]
    pub fn plans(&self) -> Vec<Plan> {
        self.lock()
            .sandboxes
            .values()
            .map(|sandbox| sandbox.plan.clone())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world, unless this verb is to fail now.
    fn enter(&self, verb: &'static str) -> Result<MutexGuard<'_, World>, RuntimeError> {
        let mut world = self.lock();
        world.maybe_fail(verb)?;
        Ok(world)
    }
}

#[async_trait]
impl Runtime for Fake {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn egress(&self) -> Option<PathBuf> {
        self.egress.clone()
    }

    async fn create(&self, plan: Plan) -> Result<Observed, RuntimeError> {
        // The sender lives in `self`, so waiting ends only when creates are let through.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        let mut world = self.enter("create")?;
        if let Some(living) = world.sandboxes.get(&plan.id) {
            return Ok(living.observed.clone());
        }
        if let Some(from) = &plan.from {
            world.find_layer(&from.sandbox, from.layer)?;
        }
        let plan = world.foundation(&plan)?;
        if !world.images.contains(&plan.image) {
            let message = format!(
                "the image '{}' is not in the local store: build it with `barchan image build`, \
                 or add an alias for it",
                plan.image
            );
            return Err(RuntimeError::new(ErrorKind::UnknownImage, message));
        }
        world.make_volumes(&plan)?;
        let socket = self.home.join(plan.id.as_str()).with_extension("sock");
        let guest = Arc::clone(&self.guest);
        let mut unenforced = world::unenforced(&plan.limits, &self.capabilities);
        if !self.capabilities.limit_volume && volumes::is_size_asked(&plan) {
            unenforced.push("storage".to_owned());
        }
        let outcome = script::run(&plan.entrypoint);
        let id = plan.id.clone();
        let made = world.make(plan, socket, unenforced, &outcome.log, guest, &self.handle)?;
        drop(world);
        if let Some(code) = outcome.exit {
            self.end(&id, EndReason::Exit(code));
        }
        Ok(made)
    }

    async fn observe(&self, id: &SandboxId) -> Result<Option<Observed>, RuntimeError> {
        let world = self.enter("observe")?;
        Ok(world
            .sandboxes
            .get(id)
            .map(|sandbox| sandbox.observed.clone()))
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        let world = self.enter("list")?;
        Ok(world
            .sandboxes
            .values()
            .map(|sandbox| sandbox.observed.clone())
            .collect())
    }

    async fn pause(&self, id: &SandboxId, how: Pause) -> Result<(), RuntimeError> {
        let changed = {
            let mut world = self.enter("pause")?;
            match how {
                Pause::Freeze => world.turn(id, &Phase::Running, Phase::Paused)?,
                Pause::ToDisk { note } => world.park(id, note)?,
            }
        };
        let _ = self.changes.send(changed);
        let _ = self.pausing.subscribe().wait_for(|open| *open).await;
        Ok(())
    }

    async fn resume(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let mut world = self.enter("resume")?;
        let changed = match world.get(id)?.observed.phase {
            Phase::Parked => world.unpark(id, Arc::clone(&self.guest), &self.handle)?,
            _ => world.turn(id, &Phase::Paused, Phase::Running)?,
        };
        let _ = self.changes.send(changed);
        Ok(())
    }

    async fn delete(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let mut world = self.enter("delete")?;
        world.sandboxes.remove(id);
        world.layers.remove(id);
        world.drop_volumes(id);
        Ok(())
    }

    async fn warm(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let mut world = self.enter("warm")?;
        world.get(id)?;
        world.warmed.insert(id.clone());
        Ok(())
    }

    async fn volumes(&self) -> Result<Vec<NamedVolume>, RuntimeError> {
        Ok(self.enter("volumes")?.list_volumes())
    }

    async fn remove_volume(&self, name: &str) -> Result<(), RuntimeError> {
        self.enter("remove_volume")?.remove_volume(name)
    }

    async fn snapshot(&self, order: SnapshotOrder) -> Result<Snapshot, RuntimeError> {
        // The sender lives in `self`, so waiting ends only when snapshots are let through.
        let mut copying = self.copying.subscribe();
        let waited = tokio::time::timeout(order.wait, copying.wait_for(|open| *open)).await;
        if waited.is_err() {
            let message = "the snapshot took too long";
            return Err(RuntimeError::new(ErrorKind::Unavailable, message));
        }
        self.enter("snapshot")?.take_snapshot(&order)
    }

    async fn snapshots(&self) -> Result<Vec<SnapshotId>, RuntimeError> {
        Ok(self.enter("snapshots")?.list_snapshots())
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), RuntimeError> {
        self.enter("delete_snapshot")?.snapshots.remove(id);
        Ok(())
    }

    async fn export_snapshot(&self, order: ExportOrder) -> Result<Export, RuntimeError> {
        self.enter("export_snapshot")?.export(&order)
    }

    async fn import_snapshot(
        &self,
        order: ImportOrder,
        archive: Pieces,
    ) -> Result<Imported, RuntimeError> {
        let archive = snapshots::receive(archive, order.bytes_max).await?;
        self.enter("import_snapshot")?.import(order, &archive)
    }

    async fn is_busy(&self, id: &SandboxId) -> Result<bool, RuntimeError> {
        let world = self.enter("is_busy")?;
        world.get(id)?;
        Ok(world.busy.contains(id))
    }

    async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Upstream, RuntimeError> {
        let world = self.enter("endpoint")?;
        let sandbox = world.get(id)?;
        let prefix = if port == EXECD_PORT {
            String::new()
        } else {
            format!("/proxy/{port}")
        };
        Ok(Upstream {
            socket: sandbox.socket.clone(),
            prefix,
        })
    }

    async fn logs(&self, id: &SandboxId) -> Result<Vec<u8>, RuntimeError> {
        let world = self.enter("logs")?;
        Ok(world.get(id)?.log.clone())
    }

    async fn seal(&self, order: SealOrder) -> Result<Sealed, RuntimeError> {
        self.enter("seal")?.seal(order)
    }

    async fn layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError> {
        self.enter("layers")?.list_layers(id)
    }

    async fn compare(&self, order: CompareOrder) -> Result<Comparison, RuntimeError> {
        self.enter("compare")?.compare(&order)
    }

    async fn undo(&self, id: &SandboxId, layer: u32) -> Result<Observed, RuntimeError> {
        self.enter("undo")?.undo(id, layer)
    }

    async fn forget_layers(&self, id: &SandboxId, layers: &[u32]) -> Result<(), RuntimeError> {
        self.enter("forget_layers")?.forget_layers(id, layers)
    }

    fn watch(&self) -> broadcast::Receiver<Observed> {
        self.changes.subscribe()
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fake")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
