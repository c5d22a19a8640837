//! Calls about the sealed layers of sandboxes.

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::layers::{Commit, Fork, SealLayer, Undo};
use barchan_wire::lifecycle::{Forked, Layer, LayerList, Sandbox, Snapshot};
use http::Method;

use super::Client;
use crate::error::ClientError;
use crate::files::Download;
use crate::http::{empty, parse};

/// How it is told what differs between layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// Lines of JSON: [`barchan_wire::lifecycle::changes::DiffLine`].
    Lines,
    /// A layer of an image, as a tar archive.
    Tar,
}

/// Where a comparison ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffEnd {
    /// The last layer.
    Last,
    /// A layer.
    Layer(u32),
    /// How the sandbox is now, while it runs.
    Now,
}

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

    /// A layer, with its digest.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or not all of it can be read.
    pub async fn layer(&self, id: &SandboxId, layer: u32) -> Result<Layer, ClientError> {
        let path = format!("/x/layers/{id}/kept/{layer}");
        let http = self.patient();
        let request = http.request(Method::GET, &path).body(empty())?;
        let answer = http.send(request).await?;
        http.read_json(answer).await
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

    /// What differs between two layers, as it is found; without `from` the first is the one before
    /// the other.
    ///
    /// # Errors
    /// When there is no such sandbox or layer. The stream breaks off when not all can be told.
    pub async fn compare(
        &self,
        id: &SandboxId,
        (from, to): (Option<u32>, DiffEnd),
        form: DiffForm,
    ) -> Result<Download, ClientError> {
        let from = from.map(|number| format!("&from={number}"));
        let to = match to {
            DiffEnd::Last => None,
            DiffEnd::Layer(number) => Some(format!("&to={number}")),
            DiffEnd::Now => Some("&to=now".to_owned()),
        };
        let form = match form {
            DiffForm::Lines => "json",
            DiffForm::Tar => "tar",
        };
        let query: String = from.into_iter().chain(to).collect();
        let path = format!("/x/layers/{id}/diff?format={form}{query}");
        let http = self.patient();
        let request = http.request(Method::GET, &path).body(empty())?;
        let answer = http.send(request).await?;
        Ok(Download::new(answer, self.http.limits()))
    }

    /// Begins to make a snapshot of a layer.
    ///
    /// # Errors
    /// When there is no such sandbox or layer, or there are too many snapshots.
    pub async fn commit(&self, id: &SandboxId, wish: &Commit) -> Result<Snapshot, ClientError> {
        let path = format!("/x/layers/{id}/commit");
        parse(&self.http.call(Method::POST, &path, Some(wish)).await?)
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
