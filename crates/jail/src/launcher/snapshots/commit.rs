//! Snapshots of sealed layers: the sandbox, if it still runs, runs on and notices nothing.

use std::os::fd::AsFd;

use super::{Asked, Launcher, Task};
use crate::capture::{Commit, Given, Process, Work};
use crate::launcher::create::Caller;
use crate::launcher::layers::{no_layer, no_sandbox};
use crate::proto::{Failure, FailureKind, SnapshotOrder};

impl Launcher {
    pub(super) fn begin_commit(
        &mut self,
        caller: Caller,
        order: SnapshotOrder,
        layer: u32,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::new(FailureKind::Snapshot, error.to_string());
        let shelf = self.room_for(&order.snapshot)?;
        let tenant = self.known(&order.sandbox);
        let tenant = tenant.ok_or_else(|| no_sandbox(&order.sandbox))?;
        let layers = tenant.files.stack(layer);
        let layers = layers.ok_or_else(|| no_layer(&order.sandbox, layer))?;
        let layers = layers.to_vec();
        let keepsake = tenant.spec.keepsake.clone();
        let stack = self.disks.sources(&layers).map_err(failed)?;
        let work = Work::Commit(Commit {
            snapshot: order.snapshot.clone(),
            bytes_max: order.bytes_max,
            entries_max: order.entries_max,
        });
        let given = Given {
            shelf: shelf.as_fd(),
            layer: None,
            events: None,
            connection: None,
            stack: &stack,
        };
        let process = Process::start(&work, &given).map_err(failed)?;
        let asked = Asked {
            order,
            caller,
            keepsake,
        };
        self.employ(process, Task::Commit(asked, layers))
            .map_err(failed)
    }
}
