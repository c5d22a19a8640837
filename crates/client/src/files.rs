//! Files on their way into a sandbox and out of it, never held in memory as a whole.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use barchan_wire::execd::file::UploadMetadata;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use crate::command::next_piece;
use crate::error::ClientError;
use crate::http::{Body, LocalRead, json};
use crate::limits::{Limits, TRANSFER_CHUNK_BYTES};

/// A multipart body for one file, the boundary it uses, and how many bytes of it have left.
pub(crate) struct Upload {
    pub(crate) body: Body,
    pub(crate) content_type: String,
    pub(crate) moved: Arc<AtomicU64>,
}

/// Called with the bytes of each piece of a transfer.
pub type Progress = Box<dyn FnMut(u64) + Send>;

impl Upload {
    pub(crate) fn new(
        metadata: &UploadMetadata,
        content: impl AsyncRead + Send + 'static,
        progress: Progress,
    ) -> Result<Self, ClientError> {
        let boundary = format!("barchan_{}", uuid::Uuid::new_v4().simple());
        let metadata = String::from_utf8_lossy(&json(metadata)?).into_owned();
        let head = format!(
            "--{boundary}\r\n\
             Content-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n\
             Content-Type: application/json\r\n\r\n\
             {metadata}\r\n\
             --{boundary}\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        let moved = Arc::new(AtomicU64::new(0));
        let content = counted(content, &moved, progress);
        let one = |text: String| stream::once(async move { Ok(Bytes::from(text)) });
        let frames = one(head)
            .chain(content)
            .chain(one(tail))
            .map(|piece| piece.map(Frame::data));
        Ok(Self {
            body: BodyExt::boxed_unsync(StreamBody::new(frames)),
            content_type: format!("multipart/form-data; boundary={boundary}"),
            moved,
        })
    }
}

/// The bytes of a reader as a body, and how many of them have left.
pub(crate) fn streamed(
    content: impl AsyncRead + Send + 'static,
    progress: Progress,
) -> (Body, Arc<AtomicU64>) {
    let moved = Arc::new(AtomicU64::new(0));
    let frames = counted(content, &moved, progress).map(|piece| piece.map(Frame::data));
    (BodyExt::boxed_unsync(StreamBody::new(frames)), moved)
}

fn counted(
    content: impl AsyncRead + Send + 'static,
    moved: &Arc<AtomicU64>,
    mut progress: Progress,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let counter = Arc::clone(moved);
    ReaderStream::with_capacity(content, TRANSFER_CHUNK_BYTES).map(move |read| {
        let bytes = read.map_err(|error| io::Error::new(error.kind(), LocalRead(error)))?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        counter.fetch_add(length, Ordering::Relaxed);
        progress(length);
        Ok(bytes)
    })
}

/// A file that is being read from a sandbox.
#[derive(Debug)]
pub struct Download {
    body: Incoming,
    limits: Limits,
    /// Its size in bytes, where the daemon says so.
    pub size_bytes: Option<u64>,
}

impl Download {
    pub(crate) fn new(answer: http::Response<Incoming>, limits: Limits) -> Self {
        let length = answer.headers().get(http::header::CONTENT_LENGTH);
        let size_bytes = length
            .and_then(|it| it.to_str().ok())
            .and_then(|it| it.parse().ok());
        Self {
            body: answer.into_body(),
            limits,
            size_bytes,
        }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// When the stream breaks or stands still.
    // BOUNDARY: sandbox → host. Test: a_download_that_stands_still_is_given_up
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let piece = tokio::time::timeout(self.limits.silence(), next_piece(&mut self.body)).await;
        piece.map_err(|_| self.limits.late_piece())?
    }

    /// Writes all of it, and tells the size of each piece as it is written.
    ///
    /// # Errors
    /// Those of [`Download::next`]; `Local` when the writer fails.
    pub async fn copy_to(
        mut self,
        writer: &mut (impl AsyncWrite + Unpin),
        mut progress: Progress,
    ) -> Result<u64, ClientError> {
        let mut total = 0;
        while let Some(bytes) = self.next().await? {
            writer.write_all(&bytes).await.map_err(ClientError::Local)?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            progress(length);
            total += length;
        }
        writer.flush().await.map_err(ClientError::Local)?;
        Ok(total)
    }
}
