//! Snapshots as OCI images.

use barchan_wire::id::SnapshotId;
use barchan_wire::lifecycle::Snapshot;
use http::Method;
use tokio::io::AsyncRead;

use super::Client;
use crate::error::ClientError;
use crate::files::{Download, Progress, streamed};
use crate::http::{Http, empty};
use crate::limits::Limits;
use crate::sandbox::encoded;

/// How long a server may pack an image before it sends it, or unpack one that it has, in
/// milliseconds: that is its operator's to limit.
const PACKING_MS: u64 = 6 * 3600 * 1000;

/// An image on its way here.
#[derive(Debug)]
pub struct ImageDownload {
    /// The archive.
    pub archive: Download,
    /// The image's digest, where the server says so.
    pub digest: Option<String>,
}

impl Client {
    /// A snapshot as an OCI image, with or without the host's own system if it stands on that.
    ///
    /// # Errors
    /// When there is no such snapshot, or it cannot be packed.
    pub async fn export_snapshot(
        &self,
        id: &SnapshotId,
        without_host: bool,
    ) -> Result<ImageDownload, ClientError> {
        let http = self.patient();
        let path = format!("/x/snapshots/{id}/export?withoutHost={without_host}");
        let request = http.request(Method::GET, &path).body(empty())?;
        let answer = http.send(request).await?;
        let digest = answer.headers().get(http::header::ETAG);
        let digest = digest.and_then(|it| it.to_str().ok());
        Ok(ImageDownload {
            digest: digest.map(|it| it.trim_matches('"').to_owned()),
            archive: Download::new(answer, self.http.limits()),
        })
    }

    /// Makes a snapshot of an OCI image in a tar archive.
    ///
    /// # Errors
    /// `Local` when the reader fails, `Api` when the server refuses.
    pub async fn import_snapshot(
        &self,
        name: Option<&str>,
        archive: impl AsyncRead + Send + 'static,
        progress: Progress,
    ) -> Result<Snapshot, ClientError> {
        let http = self.patient();
        let (body, moved) = streamed(archive, progress);
        let name = name.map(|name| format!("?name={}", encoded(name)));
        let path = format!("/x/snapshots/import{}", name.unwrap_or_default());
        let request = http.request(Method::POST, &path);
        let request = request
            .header(http::header::CONTENT_TYPE, "application/x-tar")
            .body(body)?;
        let answer = http.send_long(request, &moved).await?;
        http.read_json(answer).await
    }

    pub(super) fn patient(&self) -> Http {
        let limits = self.http.limits();
        self.http.with_limits(Limits {
            answer_ms: limits.answer_ms.max(PACKING_MS),
            ..limits
        })
    }
}
