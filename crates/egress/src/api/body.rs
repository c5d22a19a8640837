//! Reads the bodies of requests.

use std::future::poll_fn;
use std::pin::Pin;

use barchan_daemon::payload::Payload;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use hyper::body::{Body, Frame};
use serde::de::DeserializeOwned;

use crate::answers::Refusal;

/// The whole body, of at most `bytes_max`.
///
/// # Errors
/// When it is larger or breaks off.
pub(super) async fn whole(mut body: Payload, bytes_max: usize) -> Result<Bytes, Refusal> {
    let mut all = BytesMut::new();
    loop {
        let frame = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return Ok(all.freeze()),
            Some(Ok(Ok(bytes))) => all.extend_from_slice(&bytes),
            // Trailers carry nothing that any route here needs.
            Some(Ok(Err(_))) => {}
            Some(Err(error)) => {
                return Err(Refusal::bad_request(format!("the body broke off: {error}")));
            }
        }
        if all.len() > bytes_max {
            let message = format!("the body is too large, {bytes_max} bytes at most");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
    }
}

/// A body of JSON.
///
/// # Errors
/// When it is none, or not of this shape.
pub(super) async fn json<T: DeserializeOwned>(
    body: Payload,
    bytes_max: usize,
) -> Result<T, Refusal> {
    parse(&whole(body, bytes_max).await?)
}

/// Reads JSON.
///
/// # Errors
/// When it is none, or not of this shape.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|error| Refusal::bad_request(format!("the body is not the JSON needed: {error}")))
}
