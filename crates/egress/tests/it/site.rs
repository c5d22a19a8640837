//! A web server of the internet that says what it was asked, and clients of the sandbox.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use barchan_daemon::tasks::Tasks;
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::place::PATIENCE;

/// An authority, and what it signs.
pub(crate) struct Authority {
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
    key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let key_pem = key.serialize_pem();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let own = params.self_signed(&key).unwrap();
        Self {
            pem: own.pem(),
            der: own.der().clone(),
            key_pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// As the server tells it.
    pub(crate) fn told(&self) -> Value {
        json!({"name": "ca", "certificate": self.pem, "key": self.key_pem})
    }

    /// How a server speaks TLS for some names.
    fn server(&self, names: &[&str], protocols: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let own = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// How a client speaks TLS that believes this one alone.
    pub(crate) fn client(&self, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Starts a server for some names, in TLS.
    pub(crate) fn serve(&self, listener: TcpListener, names: &[&str], protocols: &[&str]) {
        serve(listener, Some(self.server(names, protocols)));
    }
}

/// Starts a server; each connection has its thread.
pub(crate) fn serve(listener: TcpListener, tls: Option<Arc<ServerConfig>>) {
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let tls = tls.clone();
            std::thread::spawn(move || run(speak(stream, tls)));
        }
    });
}

fn run<F: Future>(task: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(task)
}

async fn speak(stream: TcpStream, tls: Option<Arc<ServerConfig>>) {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
    let Some(tls) = tls else {
        return http1(stream).await;
    };
    // A client that does not believe it ends it here.
    let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await else {
        return;
    };
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => {
            let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(
                    TokioIo::new(stream),
                    service_fn(|request| answer(Tasks::new(), request)),
                )
                .await;
        }
        _ => http1(stream).await,
    }
}

async fn http1<S>(stream: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let tasks = Tasks::new();
    let service = service_fn(|request| answer(tasks.clone(), request));
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    tasks.drain(PATIENCE).await;
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Says what it was asked, line by line: the request's line, its headers, its body.
async fn answer(
    tasks: Tasks,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    if path == "/ws" {
        let upgrade = hyper::upgrade::on(&mut request);
        tasks.spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.unwrap());
            let mut said = [0; 5];
            stream.read_exact(&mut said).await.unwrap();
            stream.write_all(&said).await.unwrap();
        });
        let response = Response::builder()
            .status(101)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .body(Full::default().boxed_unsync());
        return Ok(response.unwrap());
    }
    let (head, body) = request.into_parts();
    // A sender that gave up is none of a test's.
    let body = body.collect().await.map(|it| it.to_bytes());
    let body = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    let lines = lines(&head.headers);
    let said = format!("{} {}\n{lines}\n{body}", head.method, head.uri);
    let mut response = Response::builder();
    if path == "/gzip" {
        response = response.header("content-encoding", "gzip");
    }
    if let Some(own) = head.headers.get("authorization") {
        response = response.header("x-echo", own);
    }
    let body = match path.as_str() {
        "/pieces" => pieces(said, true),
        "/stream" => pieces(said, false),
        _ => Full::from(said).boxed_unsync(),
    };
    Ok(response.body(body).unwrap())
}

fn lines(headers: &HeaderMap) -> String {
    let lines = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        format!("{name}: {value}\n")
    });
    lines.collect()
}

/// A text byte by byte; without an end if nothing is to come behind it.
fn pieces(text: String, ends: bool) -> Body {
    let pieces = text.into_bytes().into_iter().map(|byte| {
        let frame = Frame::data(Bytes::from(vec![byte]));
        Ok::<_, Infallible>(frame)
    });
    let pieces = futures::stream::iter(pieces);
    if !ends {
        let stream = pieces.chain(futures::stream::pending());
        return StreamBody::new(stream).boxed_unsync();
    }
    StreamBody::new(pieces).boxed_unsync()
}

/// A client's TLS on a connection.
pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

pub(crate) fn tls(config: &Arc<ClientConfig>, stream: TcpStream, name: &str) -> Tls {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(client, stream)
}

/// Sends a request as it stands here and reads what comes until the end, or until a text.
pub(crate) fn ask(stream: &mut (impl Read + Write), request: &str, until: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while until.is_empty() || !String::from_utf8_lossy(&said).contains(until) {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(more) => said.extend_from_slice(&piece[..more]),
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// Sends requests of HTTP/2 side by side on one connection; the status and text of each answer.
pub(crate) fn ask_http2(
    config: &Arc<ClientConfig>,
    stream: TcpStream,
    name: &str,
    requests: Vec<Request<String>>,
) -> Vec<(u16, String)> {
    run(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let server = ServerName::try_from(name.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(server, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        Tasks::new().spawn(driver);
        let asked = requests.into_iter().map(|request| {
            let mut sender = sender.clone();
            async move {
                let response = sender
                    .send_request(request.map(Full::<Bytes>::from))
                    .await
                    .unwrap();
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (status, String::from_utf8_lossy(&body).into_owned())
            }
        });
        futures::future::join_all(asked).await
    })
}
