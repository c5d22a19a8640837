//! TLS on both sides: first with the server, so that the client is offered what that one speaks.

use std::rc::Rc;
use std::sync::Arc;

use barchan_wire::egress::Verdict;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::{Acceptor, ClientHello, NoServerSessionStorage};
use tokio_rustls::rustls::sign::SingleCertAndKey;
use tokio_rustls::rustls::{ServerConfig, sign::CertifiedKey};
use tokio_rustls::server::TlsStream;

use super::exchange::Context;
use super::metered::Stream;
use super::{Reason, http1, http2, refuse};
use crate::limits::HANDSHAKE;

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Carries requests of a client to a server, both in TLS.
pub(super) async fn carry(
    context: Rc<Context>,
    client: Stream,
    server: Stream,
) -> Result<(), Reason> {
    let acceptor = LazyConfigAcceptor::new(Acceptor::default(), client);
    let start = timeout(HANDSHAKE, acceptor).await;
    let start = start.map_err(|_| "tls_failed")?.map_err(|_| "tls_failed")?;
    let offered = offered(&start.client_hello());
    let key = context.leaf().ok_or("tls_failed")?;
    let upstream = context.upstream();
    let made = upstream.connect(context.host.as_str(), offered.clone(), server);
    let server = timeout(HANDSHAKE, made).await.unwrap_or(Err("tls_failed"));
    let chosen = match &server {
        Ok(server) => server.get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
        Err(_) => offered.into_iter().next(),
    };
    let config = config(key, chosen.clone()).ok_or("tls_failed")?;
    let client = timeout(HANDSHAKE, start.into_stream(config)).await;
    // A client that does not believe its own authority ends it here.
    let client: TlsStream<Stream> = client
        .map_err(|_| "tls_failed")?
        .map_err(|_| "tls_client_refused")?;
    let is_http2 = chosen.as_deref() == Some(HTTP2);
    match server {
        Ok(server) if is_http2 => Box::pin(http2::carry(context, client, server)).await,
        Ok(server) => Box::pin(http1::carry(context, client, server)).await,
        Err(reason) => {
            // Told inside, where a program can read it.
            context.line.settle(Verdict::Deny, reason);
            Box::pin(refuse::all(&context, client, is_http2, reason)).await;
            Ok(())
        }
    }
}

/// What a client speaks of what is understood here, as it prefers it.
fn offered(hello: &ClientHello<'_>) -> Vec<Vec<u8>> {
    let all = hello.alpn().into_iter().flatten();
    let known = all.filter(|it| [HTTP1, HTTP2].contains(it));
    known.map(<[u8]>::to_vec).collect()
}

fn config(key: Arc<CertifiedKey>, protocol: Option<Vec<u8>>) -> Option<Arc<ServerConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?;
    let resolver = SingleCertAndKey::from(key);
    let mut config = config
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = protocol.into_iter().collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Some(Arc::new(config))
}
