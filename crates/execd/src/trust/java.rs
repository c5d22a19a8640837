//! Pure. A store of certificates as Java reads it (JKS, version 2, as `sun.security.provider.
//! JavaKeyStore` writes it).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};

/// The word that everybody uses for stores which hold no secret.
pub(super) const PASSWORD: &str = "changeit";
const MAGIC: u32 = 0xFEED_FEED;
const VERSION: u32 = 2;
/// An entry that is a certificate, and no key.
const CERTIFICATE: u32 = 2;
/// Stands between the password and the content in what the store is checked by.
const SALT: &[u8] = b"Mighty Aphrodite";

/// A store of all certificates in a bundle of PEM.
pub(super) fn store(bundle: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bundle);
    let all = certificates(&text);
    let mut store = Vec::new();
    let number = |store: &mut Vec<u8>, number: usize| {
        store.extend_from_slice(&u32::try_from(number).unwrap_or(0).to_be_bytes());
    };
    store.extend_from_slice(&MAGIC.to_be_bytes());
    store.extend_from_slice(&VERSION.to_be_bytes());
    number(&mut store, all.len());
    for (at, certificate) in all.iter().enumerate() {
        store.extend_from_slice(&CERTIFICATE.to_be_bytes());
        word(&mut store, &format!("barchan-{at}"));
        // When it was put there, which nobody asks.
        store.extend_from_slice(&0_u64.to_be_bytes());
        word(&mut store, "X.509");
        number(&mut store, certificate.len());
        store.extend_from_slice(certificate);
    }
    let mut check = Sha1::new();
    for unit in PASSWORD.encode_utf16() {
        check.update(unit.to_be_bytes());
    }
    check.update(SALT);
    check.update(&store);
    store.extend_from_slice(&check.finalize());
    store
}

fn word(store: &mut Vec<u8>, word: &str) {
    let length = u16::try_from(word.len()).unwrap_or(0);
    store.extend_from_slice(&length.to_be_bytes());
    store.extend_from_slice(word.as_bytes());
}

/// What stands between the lines of PEM; what is none of it is left out.
fn certificates(text: &str) -> Vec<Vec<u8>> {
    let all = text.split("-----BEGIN CERTIFICATE-----").skip(1);
    let inside = all.filter_map(|it| Some(it.split_once("-----END CERTIFICATE-----")?.0));
    let joined = inside.map(|it| it.split_ascii_whitespace().collect::<String>());
    joined
        .filter_map(|it| BASE64_STANDARD.decode(it).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_holds_what_the_bundle_does() {
        let bundle = "# a\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n\
                      -----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n\
                      -----BEGIN CERTIFICATE-----\nBA\n==\n-----END CERTIFICATE-----";
        let store = store(bundle.as_bytes());
        let (content, check) = store.split_at(store.len() - 20);
        let expected = "feedfeed0000000200000002\
            00000002000962617263 68616e2d30 0000000000000000 0005582e353039 00000003010203\
            00000002000962617263 68616e2d31 0000000000000000 0005582e353039 0000000104";
        assert_eq!(hex::encode(content), expected.replace([' ', '\n'], ""));
        // As another implementation of SHA-1 has it.
        assert_eq!(
            hex::encode(check),
            "0b0a9004b0422bc09d3f0ecf98da6984a2940068"
        );
    }
}
