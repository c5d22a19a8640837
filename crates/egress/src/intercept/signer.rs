//! Certificates for the hosts of a sandbox, signed by its own authority when they are needed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use barchan_egress::name::Name;
use barchan_wire::egress::vault::Authority;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use tokio_rustls::rustls::crypto::aws_lc_rs::sign::any_ecdsa_type;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::sign::{CertifiedKey, SigningKey};

use crate::limits::{LEAF_MS, LEAVES_MAX};

/// How long a certificate is good for, in days: longer than it is used.
const DAYS: i64 = 7;

/// Who signs for the hosts of one sandbox.
pub(super) struct Signer {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    /// The key that all of its certificates are about.
    key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    leaves: RefCell<HashMap<Name, Leaf>>,
}

struct Leaf {
    key: Arc<CertifiedKey>,
    until_ms: u64,
}

/// Now, as a date and as milliseconds of a clock that does not go back.
pub(super) type Now = (Timestamp, u64);

impl Signer {
    /// # Errors
    /// When its key is none.
    pub(super) fn new(authority: &Authority) -> Result<Self, String> {
        let failed = |_| "the key of the sandbox's authority is none".to_owned();
        let own = KeyPair::from_pem(authority.key.reveal()).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, authority.name.as_str());
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        let signing_key =
            any_ecdsa_type(&der.into()).map_err(|_| "a key was made that is none".to_owned())?;
        Ok(Self {
            certificate: authority.certificate.clone(),
            issuer: Issuer::new(params, own),
            key,
            signing_key,
            leaves: RefCell::default(),
        })
    }

    /// Whether it is this authority.
    pub(super) fn is_of(&self, authority: &Authority) -> bool {
        self.certificate == authority.certificate
    }

    /// What the sandbox is shown as the certificate of a host.
    ///
    /// # Errors
    /// When none can be made.
    pub(super) fn leaf(&self, host: &Name, now: Now) -> Result<Arc<CertifiedKey>, rcgen::Error> {
        let mut leaves = self.leaves.borrow_mut();
        if let Some(leaf) = leaves.get(host).filter(|leaf| now.1 < leaf.until_ms) {
            return Ok(Arc::clone(&leaf.key));
        }
        let key = Arc::new(self.make(host, now.0)?);
        if leaves.len() >= LEAVES_MAX {
            leaves.clear();
        }
        let leaf = Leaf {
            key: Arc::clone(&key),
            until_ms: now.1.saturating_add(LEAF_MS),
        };
        leaves.insert(host.clone(), leaf);
        Ok(key)
    }

    fn make(&self, host: &Name, now: Timestamp) -> Result<CertifiedKey, rcgen::Error> {
        let mut params = CertificateParams::new(vec![host.as_str().to_owned()])?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Strict clients look for it.
        params.use_authority_key_identifier_extension = true;
        let today = now.to_zoned(TimeZone::UTC).date();
        // The clock of a client may be behind.
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        let moment =
            |day: Date| rcgen::date_time_ymd(day.year().into(), part(day.month()), part(day.day()));
        params.not_before = moment(today.saturating_sub(1.day()));
        params.not_after = moment(today.saturating_add(DAYS.days()));
        let certificate = params.signed_by(&self.key, &self.issuer)?;
        let chain = vec![certificate.der().clone()];
        Ok(CertifiedKey::new(chain, Arc::clone(&self.signing_key)))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Signer")
    }
}
