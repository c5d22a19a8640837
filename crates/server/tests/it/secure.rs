//! A collector that is spoken to by TLS, and those that are not who they are called.

use std::io::Write;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::collector::{Collector, Mood};
use crate::world::{Set, World, until};

/// An authority of one test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// What is to be believed, as PEM.
    file: NamedTempFile,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(certificate.pem().as_bytes()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { issuer, file }
    }

    /// Somebody whom it vouches for, under this name.
    fn vouch(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let secret = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server that sends to a collector by TLS and believes an authority.
async fn world(collector: &Collector, authority: &Authority) -> World {
    let text = format!(
        "[observe]\notlp_endpoint = \"https://{}\"\notlp_ca_file = \"{}\"\n",
        collector.address,
        authority.file.path().display()
    );
    let set = Set {
        settings: Box::leak(text.into_boxed_str()),
        ..Set::default()
    };
    World::with(&set).await
}

const GIVEN_UP: &str = "barchan_otlp_dropped_total{reason=\"collector\",signal=\"spans\"} ";

async fn given_up(world: &World) -> u64 {
    let answer = world.call("GET", "/metrics").send().await;
    let line = answer
        .text()
        .lines()
        .find_map(|it| it.strip_prefix(GIVEN_UP));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn spans_reach_a_collector_by_tls() {
    let authority = Authority::new();
    for host in ["127.0.0.1", "::1"] {
        let tls = Some(authority.vouch(host));
        let collector = Collector::at(host, Mood::Good, tls).await;
        let mut world = world(&collector, &authority).await;
        world.call("GET", "/v1/sandboxes").send().await;
        world.stop().await;
        let spans = collector.spans();
        assert!(
            spans
                .iter()
                .any(|it| it.name == "GET /sandboxes" || it.name == "GET /v1/sandboxes"),
            "{host}: {spans:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_sent_to_who_is_not_known_or_called_otherwise() {
    let (known, stranger) = (Authority::new(), Authority::new());
    for (tls, why) in [
        (
            Some(stranger.vouch("127.0.0.1")),
            "an authority that is not known",
        ),
        (Some(known.vouch("collector.example")), "another name"),
        (None, "no TLS at all"),
    ] {
        let collector = Collector::at("127.0.0.1", Mood::Good, tls).await;
        let mut world = world(&collector, &known).await;
        world.call("GET", "/v1/sandboxes").send().await;
        until("what is given up", async || given_up(&world).await > 0).await;
        world.stop().await;
        assert!(collector.sent().is_empty(), "{why}");
    }
}
