//! Files on their way in and out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::routing::{get, post};
use barchan_client::{ClientError, Progress};
use barchan_wire::execd::file::{Mode, Permission, UploadMetadata};
use tokio::io::{AsyncRead, ReadBuf};

use crate::server::{HASTY, Served, id, inside, pieces, serve, serve_within, stuck_after};

fn counted() -> (Arc<AtomicU64>, Progress) {
    let total = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&total);
    let progress = move |bytes| {
        counter.fetch_add(bytes, Ordering::Relaxed);
    };
    (total, Box::new(progress))
}

fn metadata() -> UploadMetadata {
    let permission = Permission {
        mode: Some(Mode::from_bits(0o640)),
        ..Permission::default()
    };
    UploadMetadata {
        path: "/tmp/a \"b\"\né".to_owned(),
        permission,
    }
}

/// Takes an upload apart and answers whether it is what was to be sent.
async fn check(request: Request, size: usize) -> StatusCode {
    let content_type = request
        .headers()
        .get("content-type")
        .unwrap()
        .to_str()
        .unwrap();
    let boundary = multer::parse_boundary(content_type).unwrap();
    let mut parts = multer::Multipart::new(request.into_body().into_data_stream(), boundary);
    let first = parts.next_field().await.unwrap().unwrap();
    assert_eq!(
        (first.name(), first.file_name()),
        (Some("metadata"), Some("metadata"))
    );
    let sent: UploadMetadata = serde_json::from_slice(&first.bytes().await.unwrap()).unwrap();
    assert_eq!(sent, metadata());
    let mut second = parts.next_field().await.unwrap().unwrap();
    assert_eq!(second.name(), Some("file"));
    let mut seen = 0;
    while let Some(chunk) = second.chunk().await.unwrap() {
        assert!(chunk.iter().all(|byte| *byte == b'\r'));
        seen += chunk.len();
    }
    if seen == size {
        StatusCode::OK
    } else {
        StatusCode::IM_A_TEAPOT
    }
}

fn taking(size: usize) -> Served {
    let route = post(move |request: Request| check(request, size));
    serve(
        Router::new()
            .route(&inside("/files/upload"), route)
            .layer(DefaultBodyLimit::disable()),
    )
}

#[tokio::test]
async fn an_upload_arrives_whole_whatever_its_size() {
    for size in [0, 1, 700_001, 20 * 1024 * 1024] {
        let served = taking(size);
        let (total, progress) = counted();
        let content = io::Cursor::new(vec![b'\r'; size]);
        served
            .client
            .sandbox(&id())
            .upload(&metadata(), content, progress)
            .await
            .unwrap();
        assert_eq!(total.load(Ordering::Relaxed), size as u64);
    }
}

/// A file on a disk that breaks.
struct Breaking;

impl AsyncRead for Breaking {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the disk is gone")))
    }
}

#[tokio::test]
async fn a_broken_local_file_is_told_as_such() {
    let swallow = post(|request: Request| async move {
        let limit = usize::MAX;
        drop(axum::body::to_bytes(request.into_body(), limit).await);
        StatusCode::OK
    });
    let served = serve(Router::new().route(&inside("/files/upload"), swallow));
    let sandbox = served.client.sandbox(&id());
    let error = sandbox
        .upload(&metadata(), Breaking, counted().1)
        .await
        .unwrap_err();
    let ClientError::Local(cause) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(cause.to_string(), "the disk is gone");
}

#[tokio::test]
async fn an_upload_that_nobody_reads_is_given_up() {
    let stuck = post(|_request: Request| std::future::pending::<StatusCode>());
    let routes = Router::new().route(&inside("/files/upload"), stuck);
    let served = serve_within(routes, HASTY);
    let content = io::Cursor::new(vec![b'\r'; 64 * 1024 * 1024]);
    let sandbox = served.client.sandbox(&id());
    let error = sandbox
        .upload(&metadata(), content, counted().1)
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn a_download_is_written_as_it_comes() {
    let parts = vec![vec![b'a'; 300_000], vec![b'b'; 5]];
    let answer = move || {
        let parts = parts.clone();
        async move { pieces(parts) }
    };
    let served = serve(Router::new().route(&inside("/files/download"), get(answer)));
    let download = served
        .client
        .sandbox(&id())
        .download("/tmp/a b")
        .await
        .unwrap();
    let (total, progress) = counted();
    let mut written = Vec::new();
    assert_eq!(
        download.copy_to(&mut written, progress).await.unwrap(),
        300_005
    );
    assert_eq!(total.load(Ordering::Relaxed), 300_005);
    assert_eq!(
        (written.len(), &written[299_999..]),
        (300_005, b"abbbbb".as_slice())
    );
}

#[tokio::test]
async fn a_download_that_stands_still_is_given_up() {
    let stuck = get(|| async { stuck_after(b"half") });
    let served = serve_within(
        Router::new().route(&inside("/files/download"), stuck),
        HASTY,
    );
    let download = served.client.sandbox(&id()).download("/a").await.unwrap();
    let error = download
        .copy_to(&mut Vec::new(), counted().1)
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}
