//! `POST /files/upload`: files as parts of a form, in blocks, never held whole.

use barchan_daemon::payload::Payload;
use http::Request;
use http::header::CONTENT_TYPE;

use super::answer::{Answer, done};
use super::body;
use super::files::Files;
use crate::fault::{Fault, Kind};
use crate::files::identity::Identity;
use crate::files::multipart::{Broken, Parser, Piece};
use crate::files::upload::Upload;
use crate::files::work::{Begun, Weight, begin, run};
use crate::limits::{BLOCK_BYTES, INLINE_BYTES_MAX};

/// `POST /files/upload`
pub(super) async fn upload(files: &Files<'_>, request: Request<Payload>) -> Result<Answer, Fault> {
    let content_type = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|it| it.to_str().ok());
    let parser = Parser::new(content_type.unwrap_or_default());
    let mut body = request.into_body();
    let upload = Upload::new(files.app.cwd.clone(), files.variables(), files.spelling);
    let received = match parser {
        Ok(parser) => receive(parser, &mut body, Writer::new(files.who, upload)).await,
        Err(broken) => Err(refused(broken)),
    };
    received.map(|()| done())
}

async fn receive(mut parser: Parser, body: &mut Payload, mut writer: Writer) -> Result<(), Fault> {
    while let Some(bytes) = body::next(body).await? {
        parser.feed(bytes);
        while let Some(piece) = parser.next().map_err(refused)? {
            writer.take(piece).await?;
        }
    }
    parser.finish().map_err(refused)?;
    writer.finish().await
}

fn refused(broken: Broken) -> Fault {
    Fault::new(
        Kind::BadContent,
        format!("the upload is broken: {}", broken.0),
    )
}

/// Writes an upload while its next block arrives. What is small is written at once; a large one is
/// handed to a thread block by block, so that a slow disk does not stop the daemon, nor a slow
/// caller keep a thread.
struct Writer {
    who: Option<Identity>,
    upload: Option<Upload>,
    begun: Option<Begun<Upload>>,
    batch: Vec<Piece>,
    batch_bytes: usize,
    /// Whether what comes is small enough so far to be written at once.
    inline: bool,
    inline_bytes: u64,
}

impl Writer {
    fn new(who: Option<Identity>, upload: Upload) -> Self {
        Self {
            who,
            upload: Some(upload),
            begun: None,
            batch: Vec::new(),
            batch_bytes: 0,
            inline: who.is_none(),
            inline_bytes: 0,
        }
    }

    async fn take(&mut self, piece: Piece) -> Result<(), Fault> {
        let len = match &piece {
            Piece::Data(data) => data.len(),
            _ => 0,
        };
        self.inline_bytes += len as u64;
        self.inline &= self.inline_bytes <= INLINE_BYTES_MAX;
        if self.inline {
            return match &mut self.upload {
                Some(upload) => upload.take(piece),
                None => Err(broken_off()),
            };
        }
        self.batch.push(piece);
        self.batch_bytes += len;
        if self.batch_bytes >= BLOCK_BYTES || self.batch.len() >= 1024 {
            self.flush().await?;
        }
        Ok(())
    }

    /// Waits for the block before, and begins this one.
    async fn flush(&mut self) -> Result<(), Fault> {
        let mut upload = self.settle().await?;
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        self.begun = Some(begin(self.who, move || {
            batch.into_iter().try_for_each(|piece| upload.take(piece))?;
            Ok(upload)
        }));
        Ok(())
    }

    async fn settle(&mut self) -> Result<Upload, Fault> {
        match self.begun.take() {
            Some(begun) => begun.end().await,
            None => self.upload.take().ok_or_else(broken_off),
        }
    }

    async fn finish(mut self) -> Result<(), Fault> {
        if !self.batch.is_empty() {
            self.flush().await?;
        }
        let weight = if self.begun.is_some() {
            Weight::Heavy
        } else {
            Weight::Light
        };
        let upload = self.settle().await?;
        run(self.who, weight, move || upload.finish()).await
    }
}

fn broken_off() -> Fault {
    Fault::new(Kind::Failed, "the upload broke off")
}
