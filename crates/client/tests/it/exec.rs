//! Commands as bytes: frames cut anywhere, connections that break, input that is sent again.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use barchan_client::{ClientError, Exec, Told};
use barchan_wire::execd::exec::{Ended, ExecRequest, FrameKind, Head};
use futures::{StreamExt, stream};

use crate::server::{Served, id, inside, pieces, serve};

fn frame(kind: FrameKind, offset: u64, payload: &[u8]) -> Vec<u8> {
    let bytes = payload.len();
    let head = Head {
        kind,
        offset,
        bytes,
    };
    [&head.write().unwrap()[..], payload].concat()
}

fn started(at: u64) -> Vec<u8> {
    frame(FrameKind::Started, at, b"{\"id\":\"c1\"}")
}

fn rest() -> Vec<u8> {
    [
        frame(FrameKind::Stderr, 3, b"\xff\n"),
        frame(FrameKind::Alive, 5, b""),
        frame(FrameKind::Unknown(99), 5, b"??"),
        frame(FrameKind::Gap, 8, b""),
        frame(FrameKind::Stdout, 8, b"z"),
        frame(
            FrameKind::Ended,
            9,
            b"{\"exit_code\":7,\"error\":\"exit status 7\"}",
        ),
    ]
    .concat()
}

fn said() -> Vec<Told> {
    vec![
        Told::Stdout(Bytes::from_static(b"a\0b")),
        Told::Stderr(Bytes::from_static(b"\xff\n")),
        Told::Gap(3),
        Told::Stdout(Bytes::from_static(b"z")),
        Told::Ended(Ended {
            exit_code: 7,
            error: Some("exit status 7".to_owned()),
            out_of_memory: false,
        }),
    ]
}

async fn start(served: &Served) -> Result<Exec, ClientError> {
    let sandbox = served.client.sandbox(&id());
    sandbox.exec(&ExecRequest::default()).await
}

async fn all(mut exec: Exec) -> Result<Vec<Told>, ClientError> {
    let mut found = Vec::new();
    while let Some(told) = exec.next().await? {
        found.push(told);
    }
    Ok(found)
}

/// These bytes, and then a connection that breaks.
fn broken_after(bytes: Vec<u8>) -> Response {
    let first = stream::once(async move { Ok(Bytes::from(bytes)) });
    let then = stream::once(async {
        // What came before is on its way once nothing more is ready.
        tokio::task::yield_now().await;
        Err(std::io::Error::other("the server was killed"))
    });
    Response::new(Body::from_stream(first.chain(then)))
}

#[tokio::test]
async fn frames_cut_at_every_byte_read_the_same() {
    let whole = [started(0), frame(FrameKind::Stdout, 0, b"a\0b"), rest()].concat();
    for at in (1..whole.len()).step_by(5) {
        let (one, other) = whole.split_at(at);
        let parts = vec![one.to_vec(), other.to_vec()];
        let answer = move || async move { pieces(parts.clone()) };
        let served = serve(Router::new().route(&inside("/x/exec"), post(answer)));
        let exec = start(&served).await.unwrap();
        assert_eq!(exec.id(), "c1");
        assert_eq!(all(exec).await.unwrap(), said(), "cut at {at}");
    }
}

#[tokio::test]
async fn a_broken_stream_goes_on_where_it_broke() {
    let first = [started(0), frame(FrameKind::Stdout, 0, b"a\0b")].concat();
    let cut = frame(FrameKind::Stderr, 3, b"\xff\n");
    for extra in 0..cut.len() {
        let sent = [first.as_slice(), &cut[..extra]].concat();
        let begin = move || async move { broken_after(sent) };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let again = move |RawQuery(query): RawQuery| async move {
            let mut asked = noted.lock().unwrap();
            asked.push(query.unwrap());
            match asked.len() {
                1 => StatusCode::BAD_GATEWAY.into_response(),
                _ => pieces(vec![started(3), rest()]),
            }
        };
        let routes = Router::new()
            .route(&inside("/x/exec"), post(begin))
            .route(&inside("/x/exec/{id}"), get(again));
        let served = serve(routes);
        let exec = start(&served).await.unwrap();
        assert_eq!(all(exec).await.unwrap(), said(), "{extra}");
        assert_eq!(*asked.lock().unwrap(), ["since=3&hold=true"; 2]);
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_reached_again_is_an_error() {
    let begin = || async { broken_after(started(0)) };
    let gone = || async { (StatusCode::NOT_FOUND, r#"{"code":"X","message":"gone"}"#) };
    let routes = Router::new()
        .route(&inside("/x/exec"), post(begin))
        .route(&inside("/x/exec/{id}"), get(gone));
    let served = serve(routes);
    let error = all(start(&served).await.unwrap()).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Api(it) if it.message == "gone"),
        "{error}"
    );
}

#[tokio::test]
async fn a_frame_that_cannot_be_is_refused() {
    let huge = [1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255].to_vec();
    let no_json = frame(FrameKind::Started, 0, b"\xff{");
    let not_first = frame(FrameKind::Stdout, 0, b"x");
    for bytes in [huge, no_json, not_first, Vec::new()] {
        let shown = format!("{bytes:?}");
        let answer = move || async move { pieces(vec![bytes.clone()]) };
        let served = serve(Router::new().route(&inside("/x/exec"), post(answer)));
        let error = start(&served).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Protocol(_)),
            "{shown}: {error}"
        );
    }
}

/// The input of a command that takes a part of what it is sent at first.
#[derive(Default)]
struct Input {
    taken: Vec<u8>,
    posts: usize,
    open: bool,
}

#[tokio::test]
async fn input_arrives_once_even_if_a_request_fails() {
    let input = Arc::new(Mutex::new(Input {
        open: true,
        ..Input::default()
    }));
    let state = |input: &Input| {
        let (bytes, open) = (input.taken.len(), input.open);
        format!(r#"{{"accepted_bytes":{bytes},"open":{open}}}"#)
    };
    let posted = Arc::clone(&input);
    let feed = move |RawQuery(query): RawQuery, body: Bytes| async move {
        let mut input = posted.lock().unwrap();
        let query = query.unwrap();
        let offset = query.split(['=', '&']).nth(1).unwrap();
        let known = input.taken.len() - offset.parse::<usize>().unwrap();
        let fresh = &body[known.min(body.len())..];
        input.posts += 1;
        if input.posts == 1 {
            input.taken.extend(&fresh[..fresh.len() / 2]);
            return StatusCode::GATEWAY_TIMEOUT.into_response();
        }
        input.taken.extend(fresh);
        input.open = !query.ends_with("close=true");
        state(&input).into_response()
    };
    let asked = Arc::clone(&input);
    let look = move || async move { state(&asked.lock().unwrap()) };
    let route = inside("/x/exec/{id}/stdin");
    let served = serve(Router::new().route(&route, post(feed).get(look)));
    let bytes: Vec<u8> = (0..600_000_u32).map(|at| (at % 251) as u8).collect();
    let sandbox = served.client.sandbox(&id());
    sandbox.feed("c1", bytes.as_slice()).await.unwrap();
    let input = input.lock().unwrap();
    assert!(input.taken == bytes && !input.open);
}

#[tokio::test]
async fn the_last_word_on_a_layer_counts() {
    let layer = |number: u32| {
        let layer = format!(
            "{{\"number\":{number},\"parent\":0,\"sealedAt\":\"2026-01-01T00:00:00Z\",\
             \"copied\":false,\"stillMs\":1.5,\"sizeBytes\":0,\"entries\":0}}"
        );
        frame(FrameKind::Layer, 0, layer.as_bytes())
    };
    let failed = frame(
        FrameKind::LayerError,
        0,
        b"{\"code\":\"LAYER::FAILED\",\"message\":\"full\"}",
    );
    let end = frame(FrameKind::Ended, 0, b"{\"exit_code\":0}");
    let alive = frame(FrameKind::Alive, 0, b"");
    let mut swallows = frame(FrameKind::Unknown(99), 0, &[0; 900]);
    swallows.truncate(20);
    for (before, behind, breaks, expected) in [
        (vec![], [alive, layer(2)].concat(), false, "2"),
        (layer(1), layer(2), false, "2"),
        (
            vec![],
            [layer(1), failed.clone()].concat(),
            false,
            "LAYER::FAILED",
        ),
        (layer(1), layer(2), true, "LAYER::NOT_TOLD"),
        (vec![], vec![], false, "LAYER::NOT_TOLD"),
        // A sandbox's own word, and half a frame that swallows the server's.
        (
            layer(1),
            [swallows, layer(2)].concat(),
            false,
            "LAYER::NOT_TOLD",
        ),
        (
            vec![],
            frame(FrameKind::Layer, 0, b"{"),
            false,
            "LAYER::NOT_TOLD",
        ),
    ] {
        let sent = [started(0), before, end.clone(), behind].concat();
        let answer = move |headers: HeaderMap| async move {
            assert_eq!(headers["x-barchan-seal"], "a%20b");
            match breaks {
                true => broken_after(sent),
                false => pieces(vec![sent]),
            }
        };
        let served = serve(Router::new().route(&inside("/x/exec"), post(answer)));
        let sandbox = served.client.sandbox(&id());
        let exec = sandbox.exec_sealed(&ExecRequest::default(), "a b").await;
        let told = all(exec.unwrap()).await.unwrap();
        let word = match &told[..] {
            [Told::Ended(_), Told::Layer(layer)] => layer.number.to_string(),
            [Told::Ended(_), Told::LayerError(error)] => error.code.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(word, expected);
    }
}
