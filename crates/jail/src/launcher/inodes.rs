//! Tells the disks of sandboxes that run where their next files get their inodes: see
//! [`crate::disk::begin_elsewhere`].

use std::path::Path;

use super::Launcher;
use super::slot::{Slot, Stage};
use crate::disk;

/// How often disks are looked at.
pub(super) const LOOK_MS: i64 = 1_000;

impl Launcher {
    /// Has every disk on which files were made or removed begin behind them.
    pub(super) fn move_inodes(&mut self) {
        for slot in self.slots.values_mut() {
            let Stage::Living(tenant) = &slot.stage else {
                continue;
            };
            let Some(layer) = &tenant.layer else { continue };
            if !disk::has_changed(layer, slot.free_inodes) {
                continue;
            }
            let upper = tenant.files.upper.as_ref();
            let sealed = upper.and_then(|upper| self.disks.device(upper).ok());
            let device = sealed.or(slot.device.as_ref().map(|(device, _)| device.as_path()));
            if let Some(device) = device.map(Path::to_owned) {
                begin_elsewhere(slot, &device);
            }
        }
    }
}

/// Has a sandbox's disk begin behind what was used of late. Where that cannot be said it is slower,
/// and nothing else.
pub(super) fn begin_elsewhere(slot: &mut Slot, device: &Path) {
    let free = slot.free_inodes;
    let Some(layer) = slot.tenant().and_then(|tenant| tenant.layer.as_ref()) else {
        return;
    };
    if let Ok(free) = disk::begin_elsewhere(device, layer, free) {
        slot.free_inodes = Some(free);
    }
}
