//! What differs between layers of a sandbox, and images that are made of them.

use std::sync::Arc;

use barchan_runtime::{CompareOrder, Comparison, Form, Full, Layer, RuntimeError, Share};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Layer as Told;
use barchan_wire::lifecycle::layers::{Commit, SealLayer};
use sha2::{Digest as _, Sha256};

use super::Lifecycle;
use super::layers::{by, has_layers, noted};
use crate::lifecycle::error::LifecycleError;
use crate::lifecycle::layer::LayerError;
use crate::lifecycle::snapshot::SnapshotRecord;

/// Which layers are compared, by their numbers; 0: how the sandbox was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// The one to begin with; `None`: the one before the other.
    pub from: Option<u32>,
    /// The one of which is told what differs in it.
    pub to: To,
}

/// Where a comparison ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum To {
    /// The last layer.
    #[default]
    Last,
    /// A layer.
    Layer(u32),
    /// How the sandbox is now, while it runs.
    Now,
}

/// Most comparisons of one tenant at once, which is half of what the native runtime has places for.
pub(super) const COMPARISONS_EACH: usize = 4;

/// What differs between two layers, while it is told.
#[derive(Debug)]
pub struct Comparing {
    /// What the runtime tells.
    pub comparison: Comparison,
    /// The tenant's place, which is its own for as long as somebody reads.
    pub share: Option<Share>,
}

impl Lifecycle {
    /// Begins to tell what differs between two layers of a sandbox.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or the runtime cannot do it.
    pub async fn compare(
        &self,
        id: &SandboxId,
        range: Range,
        form: Form,
    ) -> Result<Comparing, LifecycleError> {
        self.offers_layers()?;
        has_layers(&*self.get(id)?)?;
        let share = self.share()?;
        if range.to != To::Now {
            let comparison = self.compare_sealed(id, range, form).await?;
            return Ok(Comparing { comparison, share });
        }
        let (this, id) = (self.clone(), id.clone());
        // Whoever asked may leave; the layer does not stay.
        let work = self.owned(async move {
            let now = this.seal_for(&id, SealLayer::default(), true).await?.number;
            let range = Range {
                to: To::Layer(now),
                ..range
            };
            let begun = this.compare_sealed(&id, range, form).await;
            // Its files stay until all is told.
            if let Err(error) = this.0.runtime.forget_layers(&id, &[now]).await {
                tracing::warn!(%id, %error, "a layer that was sealed to be looked at stays");
            }
            begun
        });
        let comparison = work.await?;
        Ok(Comparing { comparison, share })
    }

    /// A place for one more comparison. What tenants read slowly is not to keep others from theirs.
    fn share(&self) -> Result<Option<Share>, LayerError> {
        let Some(_) = self.2.tenant() else {
            return Ok(None);
        };
        let share = self.0.comparisons.take(self.2.owner());
        share.map(Some).map_err(|full| match full {
            Full::All(most) | Full::Own(most) => LayerError::Crowded(most),
        })
    }

    async fn compare_sealed(
        &self,
        id: &SandboxId,
        range: Range,
        form: Form,
    ) -> Result<Comparison, LifecycleError> {
        let all = self.0.runtime.layers(id).await;
        let (from, to) = range.of(id, &all.map_err(|source| by(id, source))?)?;
        let order = CompareOrder {
            sandbox: id.clone(),
            from,
            to,
            form,
        };
        let compared = self.0.runtime.compare(order).await;
        compared.map_err(|source| by(id, source))
    }

    /// A layer with its digest.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or the runtime cannot tell all that is in it.
    pub async fn layer(&self, id: &SandboxId, number: u32) -> Result<Told, LifecycleError> {
        self.offers_layers()?;
        has_layers(&*self.get(id)?)?;
        let all = self.0.runtime.layers(id).await;
        let all = all.map_err(|source| by(id, source))?;
        let found = all.iter().find(|layer| layer.number == number);
        let mut told = found
            .and_then(noted)
            .ok_or_else(|| LayerError::NotFound(format!("sandbox {id} has no layer {number}")))?;
        let _share = self.share()?;
        let order = CompareOrder {
            sandbox: id.clone(),
            from: 0,
            to: number,
            form: Form::Exact,
        };
        let compared = self.0.runtime.compare(order).await;
        let mut comparison = compared.map_err(|source| by(id, source))?;
        let mut digest = Sha256::new();
        while let Some(piece) = comparison.pieces.recv().await {
            if piece.is_empty() {
                told.digest = Some(format!("sha256:{}", hex::encode(digest.finalize())));
                return Ok(told);
            }
            digest.update(&piece);
        }
        let RuntimeError { kind, message } = comparison.why_broken().await;
        let words = format!("layer {number} of sandbox {id} cannot be read to its end: {message}");
        Err(LayerError::Runtime(RuntimeError::new(kind, words)).into())
    }

    /// Begins to make a snapshot of a layer, of one that is sealed now if none is named.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or as when a snapshot is taken.
    pub async fn commit(
        &self,
        id: &SandboxId,
        wish: Commit,
    ) -> Result<Arc<SnapshotRecord>, LifecycleError> {
        self.offers_layers()?;
        let source = self.get(id)?;
        has_layers(&source)?;
        let layer = match wish.layer {
            Some(layer) => {
                let all = self.0.runtime.layers(id).await;
                known(id, &all.map_err(|source| by(id, source))?, layer)?;
                layer
            }
            None => self.seal(id, SealLayer::default()).await?.number,
        };
        if self.0.shutdown.has_begun() {
            return Err(LifecycleError::Stopping);
        }
        self.begin_snapshot(&source, Some(layer), wish.name).await
    }
}

impl Range {
    fn of(self, id: &SandboxId, all: &[Layer]) -> Result<(u32, u32), LayerError> {
        let to = match self.to {
            To::Layer(number) => Some(number),
            To::Last | To::Now => all.iter().filter_map(noted).map(|it| it.number).next_back(),
        };
        let none = || LayerError::NotFound(format!("sandbox {id} has no layers to compare"));
        let to = to.ok_or_else(none)?;
        known(id, all, to)?;
        let parent = all.iter().find(|layer| layer.number == to);
        let from = self.from.or(parent.map(|layer| layer.parent));
        let from = from.unwrap_or_default();
        known(id, all, from)?;
        Ok((from, to))
    }
}

fn known(id: &SandboxId, all: &[Layer], number: u32) -> Result<(), LayerError> {
    if number == 0 || all.iter().any(|layer| layer.number == number) {
        return Ok(());
    }
    Err(LayerError::NotFound(format!(
        "sandbox {id} has no layer {number}"
    )))
}
