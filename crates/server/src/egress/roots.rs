//! Certificates by which servers are believed where the TLS of a sandbox is opened: those of this
//! host, and those of a file.

use std::path::Path;
use std::sync::Arc;

use barchan_daemon::folder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// Characters of a line of PEM.
const LINE: usize = 64;

/// The certificates of a file; `None` when it cannot be read or holds none.
pub(crate) fn certificates(path: &Path) -> Option<Vec<CertificateDer<'static>>> {
    let file = folder::open_regular(path).ok()?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
    read.ok().filter(|all| !all.is_empty())
}

/// All of them as PEM. A file that is gone since the settings were checked adds none.
pub(crate) fn roots(extra: Option<&Path>) -> Arc<str> {
    let mut all = extra.and_then(certificates).unwrap_or_default();
    all.extend(rustls_native_certs::load_native_certs().certs);
    let mut text = String::new();
    for certificate in all {
        write(&mut text, &certificate);
    }
    text.into()
}

fn write(text: &mut String, der: &[u8]) {
    text.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut line = 0;
    for character in STANDARD.encode(der).chars() {
        if line == LINE {
            text.push('\n');
            line = 0;
        }
        text.push(character);
        line += 1;
    }
    text.push_str("\n-----END CERTIFICATE-----\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let own = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ca.pem");
        let mut text = String::new();
        write(&mut text, own.cert.der());
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(certificates(&path).unwrap(), [own.cert.der().clone()]);
        assert!(roots(Some(&path)).starts_with(&text));
        std::fs::write(&path, "no certificate").unwrap();
        assert_eq!(certificates(&path), None);
        assert_eq!(certificates(&home.path().join("none.pem")), None);
        assert_eq!(certificates(home.path()), None);
    }
}
