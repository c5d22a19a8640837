//! Streams into ports of sandboxes, and the end of these.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use barchan_client::{ApiError, ClientError};
use futures::stream;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

use crate::server::{HASTY, KEY, Served, id, serve, serve_within};

const EVENTS: &str = "/x/events";

fn path(rest: &str) -> String {
    format!("/x/sandboxes/{}{rest}", id())
}

/// Agrees, greets in the same breath, and sends everything back.
async fn echo(mut request: Request) -> Response {
    let headers = request.headers();
    assert_eq!(headers["open-sandbox-api-key"], KEY);
    assert_eq!(
        (&headers["connection"], &headers["upgrade"]),
        (&"Upgrade".parse().unwrap(), &"tcp".parse().unwrap())
    );
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::runtime::Handle::current().spawn(async move {
        let (mut reader, mut writer) = split(TokioIo::new(upgrade.await.unwrap()));
        writer.write_all(b"\0\xff").await.unwrap();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let agreed = Response::builder()
        .status(101)
        .header("connection", "upgrade");
    agreed.header("upgrade", "tcp").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn bytes_go_to_a_port_and_back() {
    let served = serve(Router::new().route(&path("/tcp/80"), get(echo)));
    let mut stream = served.client.connect_to_port(&id(), 80).await.unwrap();
    stream.write_all(b"\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert_eq!(said, b"\0\xff\r\n\r\n");
}

#[tokio::test]
async fn what_is_no_stream_is_an_error() {
    let refused = async || {
        let body = json!({"code": "BACKEND_CONNECTION_FAILED", "message": "nothing listens"});
        (StatusCode::BAD_GATEWAY, Json(body)).into_response()
    };
    let routes = Router::new().route(&path("/tcp/80"), get(refused));
    let served = serve(routes.route(&path("/tcp/81"), get(async || "a page")));
    let refused = served
        .client
        .connect_to_port(&id(), 80)
        .await
        .err()
        .unwrap();
    let code = match refused {
        ClientError::Api(ApiError { code, .. }) => code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code, "BACKEND_CONNECTION_FAILED");
    let page = served
        .client
        .connect_to_port(&id(), 81)
        .await
        .err()
        .unwrap();
    assert!(matches!(page, ClientError::Protocol(_)), "{page:?}");
}

/// A server whose sandbox has ended once it was looked at, or from the start. What it tells of the
/// end has these pieces.
fn ending(is_over: bool, pieces: Vec<&'static str>) -> Served {
    let looked = Arc::new(AtomicBool::new(is_over));
    let look = move || async move {
        let state = match looked.swap(true, Ordering::SeqCst) {
            true => json!({"state": "Failed", "message": "out of memory"}),
            false => json!({"state": "Running"}),
        };
        let sandbox: Value = json!({
            "id": id(), "status": state, "createdAt": "2030-01-01T00:00:00Z", "entrypoint": [],
        });
        Json(sandbox)
    };
    let tell = async || {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        let whole = stream::iter(pieces);
        Response::new(Body::from_stream(whole))
    };
    let routes = Router::new().route(EVENTS, get(tell));
    serve_within(
        routes.route(&format!("/v1/sandboxes/{}", id()), get(look)),
        HASTY,
    )
}

#[tokio::test]
async fn the_end_of_a_sandbox_is_waited_for() {
    let silent = ": watching\n\n: still here\n\n";
    let told = "id: 1-1\nevent: ended\ndata: {\"event\":\"ended\"}\n\n";
    let why = format!("sandbox {} has ended: out of memory", id());
    for (is_over, pieces, expected) in [
        (true, vec![silent], Some(why.clone())),
        (false, vec![silent, told], Some(why.clone())),
        (
            false,
            vec![silent, "event: gap\ndata", ": {}\n\n"],
            Some(why),
        ),
        // The server went away before that.
        (false, vec![silent], None),
    ] {
        let served = ending(is_over, pieces);
        let end = served.client.wait_for_end_of(&id()).await.unwrap();
        assert_eq!(end, expected);
    }
}

#[tokio::test]
async fn a_sandbox_that_nobody_knows_has_ended() {
    let gone = async || {
        let body = json!({"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "it is gone (ttl)"});
        (StatusCode::NOT_FOUND, Json(body)).into_response()
    };
    let served = serve(Router::new().fallback(gone));
    let end = served.client.end_of(&id()).await.unwrap();
    assert_eq!(end.as_deref(), Some("it is gone (ttl)"));
    // Who tells no events is no sandbox that ended.
    assert!(served.client.wait_for_end_of(&id()).await.is_err());
}
