//! A server on a Unix socket in a temporary folder, gone with the test's runtime.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use barchan_client::{Client, Limits, Target};
use barchan_wire::id::SandboxId;
use barchan_wire::secret::Secret;
use futures::stream;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

/// A running server and a client of it.
pub(crate) struct Served {
    pub(crate) client: Client,
    _folder: TempDir,
    _task: JoinSet<()>,
}

/// Deadlines short enough for tests that run into them.
pub(crate) const HASTY: Limits = Limits {
    connect_ms: 1_000,
    answer_ms: 300,
    silence_ms: 300,
};

pub(crate) const KEY: &str = "k-1";

/// Serves the routes with deadlines that nothing honest runs into.
pub(crate) fn serve(routes: Router) -> Served {
    serve_within(routes, Limits::default())
}

pub(crate) fn serve_within(routes: Router, limits: Limits) -> Served {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let client = Client::new(Target::Unix(path), Some(&Secret::new(KEY)), limits).unwrap();
    Served {
        client,
        _folder: folder,
        _task: task,
    }
}

pub(crate) fn id() -> SandboxId {
    "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap()
}

/// The path of a route of the sandbox's daemon behind the proxy.
pub(crate) fn inside(path: &str) -> String {
    format!("/v1/sandboxes/{}/proxy/44772{path}", id())
}

/// An answer whose body arrives in these pieces.
pub(crate) fn pieces(pieces: Vec<Vec<u8>>) -> Response {
    let pieces = pieces
        .into_iter()
        .map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
    Response::new(Body::from_stream(stream::iter(pieces)))
}

/// An answer that says this and then nothing more, without ending.
pub(crate) fn stuck_after(start: &'static [u8]) -> Response {
    let first = stream::once(async move { Ok::<_, Infallible>(Bytes::from_static(start)) });
    Response::new(Body::from_stream(futures::StreamExt::chain(
        first,
        stream::pending(),
    )))
}
