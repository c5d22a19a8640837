//! Who signs for the hosts whose connections are opened: one of each sandbox, so that whoever gets
//! hold of one speaks to one sandbox only.

use barchan_wire::egress::vault::Authority;
use barchan_wire::id::SandboxId;
use barchan_wire::secret::Secret;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};

use super::VaultError;

/// How long it is good for, in years: longer than a sandbox lives.
const YEARS: i32 = 10;

/// A new one for a sandbox, good from the day before on: the clock of a sandbox may be behind.
pub(crate) fn authority(id: &SandboxId, now: Timestamp) -> Result<Authority, VaultError> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let name = format!("Barchan sandbox {id}");
    make(name, today).map_err(|error| VaultError::Sealing(error.to_string()))
}

fn make(name: String, today: Date) -> Result<Authority, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params
        .distinguished_name
        .push(DnType::CommonName, name.as_str());
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let from = today.saturating_sub(1.day());
    let until = today.saturating_add(YEARS.years());
    let part = |number: i8| u8::try_from(number).unwrap_or(1);
    let moment =
        |day: Date| rcgen::date_time_ymd(day.year().into(), part(day.month()), part(day.day()));
    params.not_before = moment(from);
    params.not_after = moment(until);
    let certificate = params.self_signed(&key)?;
    Ok(Authority {
        name,
        certificate: certificate.pem(),
        key: Secret::new(key.serialize_pem()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_has_one_of_its_own() {
        let now = Timestamp::from_second(1_900_000_000).unwrap();
        let id = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f".parse().unwrap();
        let one = authority(&id, now).unwrap();
        let other = authority(&id, now).unwrap();
        assert_ne!(one.certificate, other.certificate);
        assert!(one.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!one.certificate.contains("PRIVATE"));
        let key = KeyPair::from_pem(one.key.reveal()).unwrap();
        assert!(key.is_compatible(&PKCS_ECDSA_P256_SHA256));
        assert!(!format!("{one:?}").contains("PRIVATE"));
    }
}
