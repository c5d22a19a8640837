//! Snapshots as OCI images: packed for whoever asks, and made of what is sent.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use barchan_daemon::payload::Payload;
use barchan_runtime::Pieces;
use barchan_wire::lifecycle::CreateSnapshot;
use barchan_wire::lifecycle::error::Faults;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::Body as _;
use serde_json::json;

use super::errors::Refusal;
use super::identity::Identity;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::snapshots::view;
use super::{Api, admission};

type Answer = Result<Response<Body>, Refusal>;

/// What an image layout is packed as.
pub(super) const TAR: &str = "application/x-tar";

impl Api {
    pub(super) async fn export_snapshot(
        &self,
        place: &Place,
        request: &Request<Payload>,
    ) -> Answer {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let without_host = query.boolean("withoutHost", &mut faults);
        let without_host = faults.or(without_host)?.unwrap_or(false);
        let id = admission::snapshot(&place.id)?;
        let export = self.lifecycle.export_snapshot(&id, without_host).await?;
        let mut response = Response::new(Body::Told(export.pieces));
        // One that ends early is told by its length.
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(TAR));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(export.bytes));
        let name = format!("attachment; filename=\"snapshot-{id}.tar\"");
        put(headers, CONTENT_DISPOSITION, &name);
        put(headers, ETAG, &format!("\"{}\"", export.digest));
        Ok(response)
    }

    pub(super) async fn import_snapshot(
        &self,
        request: Request<Payload>,
        identity: &Identity,
    ) -> Answer {
        let query = Query::read(request.uri().query());
        let name = json!({"name": query.last("name")});
        let CreateSnapshot { name } = CreateSnapshot::read(Some(&name))?;
        let lifecycle = self.lifecycle_now(identity)?;
        let archive = pieces(request.into_body());
        let (record, digest) = lifecycle.import_snapshot(name, archive).await?;
        if let Err(refusal) = self.lifecycle_now(identity) {
            // Nobody would have it.
            lifecycle.remove_snapshot(&record.id).await?;
            return Err(refusal);
        }
        let mut response = reply::json(201, &view(&record));
        let headers = response.headers_mut();
        put(headers, LOCATION, &format!("/v1/snapshots/{}", record.id));
        put(headers, ETAG, &format!("\"{digest}\""));
        Ok(response)
    }
}

/// Ids and digests are plain ASCII.
fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// A body as it comes.
fn pieces(body: Payload) -> Pieces {
    let pieces = stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        loop {
            let frame = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await?;
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(piece)) => return Some((Ok::<Bytes, io::Error>(piece), Some(body))),
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Some((Err(io::Error::other(error.to_string())), None)),
            }
        }
    });
    pieces.boxed()
}
