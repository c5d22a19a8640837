//! A collector of traces and figures on loopback, as good or as bad as a test wants it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What it does with what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    /// Never answers.
    Silent,
    /// Answers this status.
    Refusing(u16),
    /// Says that it took fewer than none.
    Lying,
    /// Says yes, and never stops.
    Endless,
    /// Says what is no HTTP.
    Babbling,
}

/// One thing that it was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    body: Bytes,
}

type Taken = Arc<Mutex<Vec<Sent>>>;

/// The collector, until it is dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    taken: Taken,
    mood: Arc<Mutex<Mood>>,
    _tasks: JoinSet<()>,
}

impl Collector {
    pub(crate) async fn new(mood: Mood) -> Self {
        Self::at("127.0.0.1", mood, None).await
    }

    /// One at this address of the host, which may want to be spoken to by TLS.
    pub(crate) async fn at(host: &str, mood: Mood, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (taken, mood) = (Taken::default(), Arc::new(Mutex::new(mood)));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&taken), Arc::clone(&mood), tls));
        Self {
            address,
            taken,
            mood,
            _tasks: tasks,
        }
    }

    pub(crate) fn become_of(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Settings of a server that sends here.
    pub(crate) fn settings(&self, more: &str) -> &'static str {
        settings(self.address, more)
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.taken.lock().unwrap().clone()
    }

    /// Every span so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for sent in self
            .sent()
            .iter()
            .filter(|it| it.path.ends_with("/v1/traces"))
        {
            let sent = ExportTraceServiceRequest::decode(&*sent.body).unwrap();
            for resource in sent.resource_spans {
                spans.extend(resource.scope_spans.into_iter().flat_map(|it| it.spans));
            }
        }
        spans
    }

    /// The figures of the last sending.
    pub(crate) fn figures(&self) -> Vec<Metric> {
        let sent = self.sent();
        let Some(last) = sent.iter().rfind(|it| it.path.ends_with("/v1/metrics")) else {
            return Vec::new();
        };
        let sent = ExportMetricsServiceRequest::decode(&*last.body).unwrap();
        let scopes = sent
            .resource_metrics
            .into_iter()
            .flat_map(|it| it.scope_metrics);
        scopes.flat_map(|it| it.metrics).collect()
    }
}

/// Settings of a server that sends to an address. They live as long as the test.
pub(crate) fn settings(address: SocketAddr, more: &str) -> &'static str {
    let text = format!("[observe]\notlp_endpoint = \"http://{address}\"\n{more}\n");
    Box::leak(text.into_boxed_str())
}

async fn serve(
    listener: TcpListener,
    taken: Taken,
    mood: Arc<Mutex<Mood>>,
    tls: Option<TlsAcceptor>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (taken, mood) = (Arc::clone(&taken), *mood.lock().unwrap());
        let tls = tls.clone();
        connections.spawn(async move {
            if let Some(tls) = tls {
                if let Ok(stream) = tls.accept(stream).await {
                    converse(stream, taken, mood).await;
                }
                return;
            }
            if mood == Mood::Babbling {
                use tokio::io::AsyncWriteExt;
                let mut stream = stream;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
                return;
            }
            converse(stream, taken, mood).await;
        });
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, taken: Taken, mood: Mood) {
    let service = service_fn(|request| {
        let taken = Arc::clone(&taken);
        async move { Ok::<_, Infallible>(answer(request, &taken, mood).await) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    connection.await.unwrap_or_default();
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(request: Request<Incoming>, taken: &Taken, mood: Mood) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let whole = |bytes: Vec<u8>| Response::new(Full::new(Bytes::from(bytes)).boxed_unsync());
    taken.lock().unwrap().push(Sent {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body,
    });
    match mood {
        Mood::Good | Mood::Babbling => whole(Vec::new()),
        Mood::Silent => std::future::pending().await,
        Mood::Refusing(status) => {
            let mut response = whole(b"go away".to_vec());
            *response.status_mut() = status.try_into().unwrap();
            response
        }
        Mood::Lying => {
            let lie = ExportTraceServiceResponse {
                partial_success: Some(ExportTracePartialSuccess {
                    rejected_spans: i64::MAX,
                    error_message: "x".repeat(10_000),
                }),
            };
            whole(lie.encode_to_vec())
        }
        Mood::Endless => {
            let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0xff; 16_384])));
            let pieces = futures::stream::repeat_with(piece);
            Response::new(StreamBody::new(pieces).boxed_unsync())
        }
    }
}
