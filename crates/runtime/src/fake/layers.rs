//! Sealed layers of sandboxes that have no files: their numbers.

use std::time::Duration;

use barchan_wire::id::SandboxId;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::world::World;
use crate::{
    CompareOrder, Comparison, ErrorKind, Form, Layer, Observed, Phase, RuntimeError, SealOrder,
    Sealed, WhenHeld,
};

/// What is said of layers that do not differ.
const NOTHING: &[u8] = b"{\"summary\":{\"added\":0,\"changed\":0,\"deleted\":0,\"touched\":0,\
    \"entries\":0,\"readBytes\":0,\"outputBytes\":0,\"textsCut\":0}}\n";

/// How what is told of layers ends.
#[derive(Debug)]
pub(super) enum Telling {
    /// All of it is told.
    Whole,
    /// It breaks off.
    BreaksOff,
    /// More is to come, and does not: who was to hear it.
    Held(Vec<mpsc::Sender<Bytes>>),
}

/// The layers of one sandbox.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    layers: Vec<Layer>,
    /// The number of the layer that it goes on from.
    at: u32,
    /// The highest number that was given.
    last: u32,
}

impl History {
    /// Those behind it stand on the one before it from then on.
    fn forget(&mut self, number: u32) {
        let found = self.layers.iter().position(|it| it.number == number);
        let Some(forgotten) = found.map(|at| self.layers.remove(at)) else {
            return;
        };
        let parents = self.layers.iter_mut().map(|it| &mut it.parent);
        for at in parents.chain(std::iter::once(&mut self.at)) {
            if *at == number {
                *at = forgotten.parent;
            }
        }
    }

    fn has(&self, number: u32) -> bool {
        number == 0 || self.layers.iter().any(|layer| layer.number == number)
    }
}

impl World {
    pub(super) fn seal(&mut self, order: SealOrder) -> Result<Sealed, RuntimeError> {
        self.running(&order.sandbox)?;
        if order.when_held == WhenHeld::Refuse && self.busy.contains(&order.sandbox) {
            return Ok(Sealed::Held(Vec::new()));
        }
        Ok(Sealed::Layer(self.add_layer(&order.sandbox, order.note)))
    }

    /// Gives a sandbox one layer more.
    pub(super) fn add_layer(&mut self, id: &SandboxId, note: String) -> Layer {
        let history = self.layers.entry(id.clone()).or_default();
        history.last += 1;
        let layer = Layer {
            number: history.last,
            parent: history.at,
            is_copied: false,
            still: Duration::ZERO,
            bytes: 0,
            entries: 0,
            note,
        };
        history.at = history.last;
        history.layers.push(layer.clone());
        layer
    }

    pub(super) fn list_layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError> {
        self.get(id)?;
        let history = self.layers.get(id);
        Ok(history.map(|it| it.layers.clone()).unwrap_or_default())
    }

    /// What is told of two layers that have no files.
    pub(super) fn compare(&mut self, order: &CompareOrder) -> Result<Comparison, RuntimeError> {
        self.find_layer(&order.sandbox, order.from)?;
        self.find_layer(&order.sandbox, order.to)?;
        let told = match order.form {
            Form::Lines => Bytes::from_static(NOTHING),
            Form::Tar | Form::Exact => Bytes::from_static(&[0; 1024]),
        };
        let (sender, pieces) = mpsc::channel(2);
        let (breaks, broken) = oneshot::channel();
        let _ = sender.try_send(told);
        match &mut self.telling {
            Telling::Whole => drop(sender.try_send(Bytes::new())),
            Telling::BreaksOff => {
                let words = "the fake was told to break off";
                let _ = breaks.send(RuntimeError::new(ErrorKind::LayerFailed, words));
            }
            Telling::Held(all) => all.push(sender),
        }
        Ok(Comparison { pieces, broken })
    }

    pub(super) fn undo(&mut self, id: &SandboxId, layer: u32) -> Result<Observed, RuntimeError> {
        let observed = self.running(id)?;
        self.find_layer(id, layer)?;
        self.layers.entry(id.clone()).or_default().at = layer;
        Ok(observed)
    }

    pub(super) fn forget_layers(
        &mut self,
        id: &SandboxId,
        layers: &[u32],
    ) -> Result<(), RuntimeError> {
        self.get(id)?;
        if let Some(history) = self.layers.get_mut(id) {
            layers.iter().for_each(|number| history.forget(*number));
        }
        Ok(())
    }

    /// Whether a sandbox has such a layer.
    pub(super) fn find_layer(&self, id: &SandboxId, layer: u32) -> Result<(), RuntimeError> {
        self.get(id)?;
        let history = self.layers.get(id);
        if layer == 0 || history.is_some_and(|history| history.has(layer)) {
            return Ok(());
        }
        let words = format!("sandbox {id} has no layer {layer}");
        Err(RuntimeError::new(ErrorKind::UnknownLayer, words))
    }

    fn running(&self, id: &SandboxId) -> Result<Observed, RuntimeError> {
        let observed = &self.get(id)?.observed;
        if observed.phase == Phase::Running {
            return Ok(observed.clone());
        }
        let words = "only a running sandbox has layers made";
        Err(RuntimeError::new(ErrorKind::Conflict, words))
    }
}
