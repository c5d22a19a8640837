//! TLS to a collector: whom it must show itself to be known by.

use std::io;
use std::path::Path;
use std::sync::Arc;

use barchan_daemon::folder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::post::BadEndpoint;

/// Speaks TLS to collectors that a known authority vouches for. Clones are the same.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

/// What a request goes over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Tls {
    /// Knows the authorities of this host and those of a file of certificates as PEM.
    ///
    /// # Errors
    /// When the file holds none or cannot be read, or nobody is known at all.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, BadEndpoint> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = ca_file {
            let file = folder::open_regular(path).map_err(|_| BadEndpoint::CaFile)?;
            for certificate in CertificateDer::pem_reader_iter(file) {
                let certificate = certificate.map_err(|_| BadEndpoint::CaFile)?;
                roots.add(certificate).map_err(|_| BadEndpoint::CaFile)?;
            }
            if roots.is_empty() {
                return Err(BadEndpoint::CaFile);
            }
        }
        // A host may have old ones that cannot be read, beside many that can.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(BadEndpoint::NobodyKnown);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| BadEndpoint::NobodyKnown)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Greets the collector, which must show that it is who it is called.
    pub(super) async fn greet(&self, host: &str, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Box::new(self.0.connect(name, stream).await?))
    }
}
