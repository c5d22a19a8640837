//! Calls about the sealed layers of sandboxes.

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::layers::{Fork, SealLayer, Undo};
use barchan_wire::lifecycle::{Forked, Layer, LayerList, Sandbox};
use http::Method;

use super::Client;
use crate::error::ClientError;
use crate::http::parse;

impl Client {
    /// Seals what a running sandbox has written.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not run, or processes use the files and that was to
    /// be refused.
    pub async fn seal(&self, id: &SandboxId, wish: &SealLayer) -> Result<Layer, ClientError> {
        let path = format!("/x/layers/{id}");
        parse(&self.http.call(Method::POST, &path, Some(wish)).await?)
    }

    /// The layers of a sandbox, oldest first.
    ///
    /// # Errors
    /// When there is no such sandbox.
    pub async fn layers(&self, id: &SandboxId) -> Result<Vec<Layer>, ClientError> {
        let list: LayerList = self.http.get(&format!("/x/layers/{id}")).await?;
        Ok(list.items)
    }

    /// Forgets a layer.
    ///
    /// # Errors
    /// When there is no such sandbox or layer.
    pub async fn forget_layer(&self, id: &SandboxId, layer: u32) -> Result<(), ClientError> {
        let path = format!("/x/layers/{id}/kept/{layer}");
        let done = self.http.call::<()>(Method::DELETE, &path, None);
        done.await.map(drop)
    }

    /// Starts a running sandbox anew with the files of a layer.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or a command runs and that was to be refused.
    pub async fn undo(&self, id: &SandboxId, wish: &Undo) -> Result<Sandbox, ClientError> {
        let path = format!("/x/layers/{id}/undo");
        parse(&self.http.call(Method::POST, &path, Some(wish)).await?)
    }

    /// Makes sandboxes of a layer, all or none.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or one of them does not come about.
    pub async fn fork(&self, id: &SandboxId, wish: &Fork) -> Result<Forked, ClientError> {
        let path = format!("/x/layers/{id}/fork");
        parse(&self.http.call(Method::POST, &path, Some(wish)).await?)
    }
}
