//! What the program tells as it happens: lines of JSON.

use std::pin::Pin;

use barchan_wire::egress::Event;
use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::SendRequest;

use super::program::{Driver, ProgramError, broke_off};

/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A stream of events. Dropping it closes its connection.
pub(crate) struct Events {
    body: Incoming,
    /// The connection ends without it.
    _sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection is over.
    driver: Option<Driver>,
    read: BytesMut,
}

impl Events {
    pub(super) fn new(body: Incoming, sender: SendRequest<Full<Bytes>>, driver: Driver) -> Self {
        Self {
            body,
            _sender: sender,
            driver: Some(driver),
            read: BytesMut::new(),
        }
    }

    /// The next event. Nothing is lost when this is given up half-way.
    ///
    /// # Errors
    /// When the stream ends, or is none.
    pub(crate) async fn next(&mut self) -> Result<Event, ProgramError> {
        loop {
            if let Some(line) = self.line() {
                if line.is_empty() {
                    // A sign of life.
                    continue;
                }
                return serde_json::from_slice(&line)
                    .map_err(|error| ProgramError::BrokeOff(error.to_string()));
            }
            if self.read.len() > LINE_BYTES_MAX {
                let words = format!("a line of more than {LINE_BYTES_MAX} bytes");
                return Err(ProgramError::BrokeOff(words));
            }
            let piece = self.piece().await?;
            self.read.extend_from_slice(&piece);
        }
    }

    /// The next line without its end, if it is here.
    fn line(&mut self) -> Option<BytesMut> {
        let end = memchr::memchr(b'\n', &self.read)?;
        let mut line = self.read.split_to(end + 1);
        line.truncate(end);
        Some(line)
    }

    async fn piece(&mut self) -> Result<Bytes, ProgramError> {
        let next = std::future::poll_fn(|cx| {
            let mut frame = Pin::new(&mut self.body).poll_frame(cx);
            if frame.is_pending()
                && let Some(driver) = &mut self.driver
            {
                if driver.as_mut().poll(cx).is_ready() {
                    self.driver = None;
                }
                frame = Pin::new(&mut self.body).poll_frame(cx);
            }
            frame
        });
        let ended = || ProgramError::BrokeOff("its stream of events ended".to_owned());
        let frame = next
            .await
            .ok_or_else(ended)?
            .map_err(|error| broke_off(&error))?;
        Ok(frame.into_data().unwrap_or_default())
    }
}
