//! TLS towards servers, which are verified as any client would.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

use super::metered::Stream;

/// How servers are believed.
pub(crate) struct Upstream {
    config: Option<ClientConfig>,
}

/// Without roots nobody is believed.
impl Default for Upstream {
    fn default() -> Self {
        Self { config: None }
    }
}

impl Upstream {
    /// Believes what these certificates sign, given as PEM. One that cannot be read is left out:
    /// hosts have odd ones among theirs.
    ///
    /// # Errors
    /// When there are some and none of them can be used.
    pub(crate) fn new(roots: &str) -> Result<Self, String> {
        if roots.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut store = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(roots.as_bytes());
        let (used, _) = store.add_parsable_certificates(certificates.filter_map(Result::ok));
        if used == 0 {
            return Err("the roots hold no certificate that can be used".to_owned());
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = config.with_root_certificates(store).with_no_client_auth();
        // Nothing of one sandbox is remembered for another.
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Some(config),
        })
    }

    /// Speaks TLS with a server.
    ///
    /// # Errors
    /// `tls_untrusted` when it is not whom it is said to be, `tls_failed` for anything else.
    pub(super) async fn connect(
        &self,
        host: &str,
        protocols: Vec<Vec<u8>>,
        server: Stream,
    ) -> Result<TlsStream<Stream>, &'static str> {
        let mut config = self.config.clone().ok_or("tls_untrusted")?;
        config.alpn_protocols = protocols;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| "tls_failed")?;
        let made = TlsConnector::from(Arc::new(config)).connect(name, server);
        made.await.map_err(|error| {
            let inner = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
            match inner {
                Some(Error::InvalidCertificate(_)) => "tls_untrusted",
                _ => "tls_failed",
            }
        })
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Upstream")
    }
}
