//! Sealed layers, which the launcher has.

use std::time::Duration;

use barchan_jail::proto::{self, Answer, Request};
use barchan_jail::seal::How;
use barchan_wire::id::SandboxId;

use super::words::unexpected;
use super::{Native, from_failure};
use crate::{Layer, Observed, RuntimeError, SealOrder, Sealed};

impl Native {
    pub(super) async fn seal_layer(&self, order: SealOrder) -> Result<Sealed, RuntimeError> {
        let request = Request::Seal(proto::SealOrder {
            sandbox: order.sandbox.to_string(),
            when_held: order.when_held,
            note: order.note,
        });
        match self.line.call_within(request, order.wait).await? {
            Answer::Layer(layer) => Ok(Sealed::Layer(from_layer(*layer))),
            Answer::Held(holders) => Ok(Sealed::Held(holders)),
            Answer::Failed(failure) => Err(from_failure(failure)),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn list_layers(&self, id: &SandboxId) -> Result<Vec<Layer>, RuntimeError> {
        match self.ask(Request::Layers(id.to_string())).await? {
            Answer::Layers(all) => Ok(all.into_iter().map(from_layer).collect()),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn undo_to(
        &self,
        id: &SandboxId,
        layer: u32,
    ) -> Result<Observed, RuntimeError> {
        let sandbox = id.to_string();
        let order = proto::UndoOrder { sandbox, layer };
        self.status(Request::Undo(order)).await
    }

    pub(super) async fn forget(&self, id: &SandboxId, layers: &[u32]) -> Result<(), RuntimeError> {
        let order = proto::ForgetOrder {
            sandbox: id.to_string(),
            layers: layers.to_vec(),
        };
        self.ask(Request::ForgetLayers(order)).await.map(|_| ())
    }
}

fn from_layer(layer: proto::SealedLayer) -> Layer {
    Layer {
        number: layer.number,
        parent: layer.parent,
        is_copied: layer.how == How::Copied,
        still: Duration::from_micros(layer.still_us),
        bytes: layer.bytes,
        entries: layer.entries,
        note: layer.note,
    }
}
