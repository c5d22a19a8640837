//! What a process of the launcher's is at.

use std::rc::Rc;

use crate::launcher::create::Caller;
use crate::launcher::layers::{Flattening, Layer, Sealing};
use crate::proto::SnapshotOrder;
use crate::spec::Keepsake;

/// A snapshot that somebody waits for.
#[derive(Debug)]
pub(in super::super) struct Asked {
    pub(super) order: SnapshotOrder,
    pub(super) caller: Caller,
    pub(super) keepsake: Keepsake,
}

/// A comparison that somebody hears.
#[derive(Debug)]
pub(in super::super) struct Comparing {
    pub(in super::super) sandbox: String,
    /// They stay for it.
    pub(in super::super) layers: Vec<Rc<Layer>>,
    /// When it began, in milliseconds.
    pub(in super::super) since_ms: i64,
    pub(in super::super) ticket: String,
}

/// What one is at.
#[derive(Debug)]
pub(in super::super) enum Task {
    Copy(Asked),
    /// Copy sealed layers, which stay for it.
    Commit(Asked, Vec<Rc<Layer>>),
    Remove,
    /// Seal a layer.
    Seal(Box<Sealing>),
    /// End what it began with the files of this sandbox, which has its layer already.
    Settle(String),
    /// Merge layers into one.
    Flatten(Box<Flattening>),
    /// Remove layers of these numbers.
    Discard(Vec<u32>),
    Pack,
    /// Compare stacks of layers.
    Compare(Comparing),
    /// Unpack the snapshot of this id.
    Unpack(String),
}

impl Task {
    /// The sandbox that stands still for it.
    pub(super) fn sandbox(&self) -> Option<&str> {
        match self {
            Self::Copy(asked) => Some(&asked.order.sandbox),
            Self::Seal(sealing) => Some(&sealing.asked.sandbox),
            _ => None,
        }
    }

    /// Files are being exchanged from now on.
    pub(super) fn begun(&mut self) {
        if let Self::Seal(sealing) = self {
            sealing.is_begun = true;
        }
    }
}
