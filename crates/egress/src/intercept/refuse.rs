//! What is answered where a request does not go on: its reason, as a line of text.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{Body, BoxError};
use super::exchange::Context;
use super::http2::{Ending, Tasks};
use super::{http1, http2};

/// An answer without the server's.
pub(super) fn answer(status: StatusCode, words: &str) -> Response<Body> {
    let text = format!("{words}\n");
    let body = Full::new(Bytes::from(text)).map_err(BoxError::from);
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, kind);
    response
}

/// Answers all requests of a connection whose server is not to be had.
pub(super) async fn all<C>(context: &Context, client: C, is_http2: bool, reason: &str)
where
    C: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let host = &context.host;
    let words = match reason {
        "tls_untrusted" => format!(
            "The certificate of {host} is not believed where credentials are put into requests \
             (tls_untrusted). Whoever runs the sandboxes can name its authority in \
             `egress.extra_ca_file`."
        ),
        _ => format!("{host} speaks no TLS that is understood here ({reason})."),
    };
    let service = service_fn(move |_: Request<Incoming>| {
        let answer = answer(StatusCode::BAD_GATEWAY, &words);
        std::future::ready(Ok::<_, BoxError>(answer))
    });
    let io = TokioIo::new(client);
    // An error is a client that went away.
    if is_http2 {
        let tasks = Tasks::default();
        let _ending = Ending(tasks.clone());
        let _ = http2::builder(tasks).serve_connection(io, service).await;
    } else {
        let mut builder = http1::builder();
        let _ = builder
            .keep_alive(false)
            .serve_connection(io, service)
            .await;
    }
}
