//! Reads the bodies of requests.

use std::future::poll_fn;
use std::pin::Pin;

use barchan_daemon::payload::Payload;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use serde::de::DeserializeOwned;

use crate::fault::{Fault, Kind};

/// A body that arrives: of a request, or of another server's answer.
pub(crate) trait Pieces: Body<Data = Bytes, Error = hyper::Error> + Unpin {}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Pieces for B {}

/// The next piece of a body; `None` at its end.
///
/// # Errors
/// When the caller stops in the middle.
pub(crate) async fn next<B: Pieces>(body: &mut B) -> Result<Option<Bytes>, Fault> {
    loop {
        let frame = poll_fn(|task| Pin::new(&mut *body).poll_frame(task)).await;
        match frame.map(|frame| frame.map(Frame::into_data)) {
            None => return Ok(None),
            Some(Ok(Ok(bytes))) => return Ok(Some(bytes)),
            // Trailers carry nothing that any route here needs.
            Some(Ok(Err(_))) => {}
            Some(Err(error)) => {
                let message = format!("the body broke off: {error}");
                return Err(Fault::new(Kind::BadRequest, message));
            }
        }
    }
}

/// The whole body, of at most `bytes_max`.
///
/// # Errors
/// When it is larger or breaks off.
pub(crate) async fn whole<B: Pieces>(mut body: B, bytes_max: usize) -> Result<Bytes, Fault> {
    let first = next(&mut body).await?.unwrap_or_default();
    if body.is_end_stream() && first.len() <= bytes_max {
        return Ok(first);
    }
    let mut all = BytesMut::from(first);
    while all.len() <= bytes_max {
        let Some(more) = next(&mut body).await? else {
            return Ok(all.freeze());
        };
        all.extend_from_slice(&more);
    }
    let message = format!("the body is too large, {bytes_max} bytes at most");
    Err(Fault::new(Kind::TooLarge, message))
}

/// A body of JSON.
///
/// # Errors
/// When it is none, or not of this shape.
pub(crate) async fn json<T: DeserializeOwned>(body: Payload, bytes_max: usize) -> Result<T, Fault> {
    parse(&whole(body, bytes_max).await?)
}

/// A body of JSON that may be absent.
///
/// # Errors
/// When it is something else, or not of this shape.
pub(crate) async fn json_or_default<T: DeserializeOwned + Default>(
    body: Payload,
    bytes_max: usize,
) -> Result<T, Fault> {
    let bytes = whole(body, bytes_max).await?;
    if bytes.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    parse(&bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(|error| {
        Fault::new(
            Kind::BadRequest,
            format!("the body is not the JSON this needs: {error}"),
        )
    })
}
