//! Reads the bodies of requests.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::fault::{Fault, Kind};

/// The next piece of a body; `None` at its end.
///
/// # Errors
/// When the caller stops in the middle.
pub(crate) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Fault> {
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
pub(crate) async fn whole(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Fault> {
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
    // Many callers look at the answer only after they have sent everything.
    drain(&mut body).await;
    let message = format!("the body is too large, {bytes_max} bytes at most");
    Err(Fault::new(Kind::TooLarge, message))
}

/// A body of JSON.
///
/// # Errors
/// When it is none, or not of this shape.
pub(crate) async fn json<T: DeserializeOwned>(
    body: Incoming,
    bytes_max: usize,
) -> Result<T, Fault> {
    let bytes = whole(body, bytes_max).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Fault::new(
            Kind::BadRequest,
            format!("the body is not the JSON this needs: {error}"),
        )
    })
}

/// Longest time for which the rest of a refused body is still taken.
const DRAIN: Duration = Duration::from_secs(60);

/// Takes what is left of a body and throws it away.
pub(crate) async fn drain(body: &mut Incoming) {
    let _ = timeout(DRAIN, async { while let Ok(Some(_)) = next(body).await {} }).await;
}
