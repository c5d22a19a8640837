//! A program that speaks HTTP/2, behind the tunnel that a daemon makes for it.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;

use super::{Body, Open, empty};

/// The daemon's side: agrees, and lets the program serve.
pub(super) fn tunnel(request: &mut Request<Incoming>, open: Open) -> Response<Body> {
    let protocol = request.headers()["upgrade"].clone();
    assert_eq!(protocol, "barchan-tcp");
    let nobody = request.uri().path() == "/proxy/9999";
    if nobody {
        let refused = Response::builder().status(502);
        let refused = refused.header("x-barchan-gateway", "refused");
        return refused.body(empty()).unwrap();
    }
    let is_broken = request.uri().path() == "/proxy/6666";
    let upgrade = hyper::upgrade::on(request);
    tokio::runtime::Handle::current().spawn(async move {
        let _open = open;
        let program = upgrade.await.unwrap();
        if is_broken {
            let mut program = TokioIo::new(program);
            program
                .write_all(b"HTTP/1.1 200 OK\r\n\r\n")
                .await
                .unwrap_or_default();
            return;
        }
        let served =
            http2::Builder::new(TokioExecutor::new()).serve_connection(program, service_fn(answer));
        served.await.unwrap_or_default();
    });
    let agreed = Response::builder().status(101);
    let agreed = agreed.header("connection", "upgrade");
    agreed.header("upgrade", protocol).body(empty()).unwrap()
}

/// Sends each message back as it comes, and ends with trailers that nobody announced; a request
/// for `/Refuse` gets an answer of trailers alone, early.
async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let seen = format!(
        "{} {} {:?} {:?}",
        request.method(),
        request.uri(),
        request.headers().get("te"),
        request.headers().get("cookie"),
    );
    let response = Response::builder()
        .header("content-type", "application/grpc")
        .header("x-seen", seen);
    if request.uri().path() == "/Refuse" {
        let response = response.header("grpc-status", "8");
        return Ok(response.body(empty()).unwrap());
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    trailers.insert("x-any-bin", "AAE".parse().unwrap());
    let frames = futures::stream::unfold(
        (Some(request.into_body()), trailers),
        async |(body, trailers)| {
            let mut body = body?;
            match body.frame().await {
                Some(Ok(frame)) if frame.is_data() => {
                    let data: Bytes = frame.into_data().unwrap();
                    Some((Ok(Frame::data(data)), (Some(body), trailers)))
                }
                _ => Some((Ok(Frame::trailers(trailers.clone())), (None, trailers))),
            }
        },
    );
    let body = BodyExt::boxed_unsync(StreamBody::new(frames));
    Ok(response.body(body).unwrap())
}
