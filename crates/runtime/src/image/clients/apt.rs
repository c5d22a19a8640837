//! apt's sources, keys, credentials and ways out, under a configuration file of a build's own.

use std::path::Path;

use super::{ClientSources, Clients, netrc, read};
use crate::image::error::ImageError;
use crate::image::store::entries;

/// Settings beneath `Acquire` that are handed on when one of these words is among their parts.
const WAYS: [&str; 10] = [
    "proxy",
    "cainfo",
    "capath",
    "sslcert",
    "sslkey",
    "verify-peer",
    "verify-host",
    "timeout",
    "retries",
    "forceipv4",
];

/// What a build's apt is always told: only what it is given counts, and nobody is asked.
const FIXED: &str = "\
APT::Sandbox::User \"root\";
APT::Install-Recommends \"false\";
APT::Get::Assume-Yes \"true\";
Dpkg::Use-Pty \"false\";
Dir::Etc::sourcelist \"/run/build/apt/sources.list\";
Dir::Etc::sourceparts \"/run/build/apt/sources.list.d\";
Dir::Etc::trusted \"/run/build/apt/trusted.gpg\";
Dir::Etc::trustedparts \"/run/build/apt/trusted.gpg.d\";
Dir::Etc::netrc \"/run/build/apt/auth.conf\";
Dir::Etc::netrcparts \"/run/build/apt/auth.conf.d\";
";

impl Clients {
    /// Adds apt's configuration; `dump` is what `apt-config dump` says.
    pub(in crate::image) fn apt(
        &mut self,
        sources: &ClientSources,
        dump: &str,
    ) -> Result<(), ImageError> {
        let etc = sources.root.join("etc/apt");
        let mut files = vec!["sources.list".to_owned(), "trusted.gpg".to_owned()];
        files.push("auth.conf".to_owned());
        for folder in ["sources.list.d", "trusted.gpg.d", "auth.conf.d"] {
            let names = if etc.join(folder).is_dir() {
                entries(&etc.join(folder))?
            } else {
                vec![]
            };
            files.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
        }
        for file in files {
            if let Ok(content) = read(&etc.join(&file)) {
                let content = self.apt_file(sources, &file, content)?;
                self.files.insert(format!("apt/{file}"), content);
            }
        }
        let mut config = FIXED.to_owned();
        for (key, value) in ways(dump) {
            self.secrets.add_url(value);
            config.push_str(&format!("{key} \"{}\";\n", self.hand_on(sources, value)?));
        }
        self.files
            .insert("apt.conf".to_owned(), config.into_bytes());
        Ok(())
    }

    /// One file as a build gets it: with its keys where the build sees them.
    fn apt_file(
        &mut self,
        sources: &ClientSources,
        name: &str,
        content: Vec<u8>,
    ) -> Result<Vec<u8>, ImageError> {
        let Ok(mut text) = String::from_utf8(content.clone()) else {
            return Ok(content);
        };
        if name.starts_with("auth.conf") {
            netrc::passwords(&text).for_each(|word| self.secrets.add(word));
        }
        if name.starts_with("sources.list") {
            text.split_whitespace()
                .for_each(|word| self.secrets.add_url(word));
            for key in keyrings(&text) {
                let handed = self.hand_on(sources, &key)?;
                text = text.replace(&key, &handed);
            }
        }
        Ok(text.into_bytes())
    }

    /// All that says where the host's packages come from, for the digest of what is built on them.
    pub(in crate::image) fn apt_sources(&self) -> impl Iterator<Item = &[u8]> {
        let files = self
            .files
            .iter()
            .filter(|(name, _)| Path::new(name).starts_with("apt"));
        files.map(|(_, content)| content.as_slice())
    }
}

/// Proxies, certificates and patience, from lines as `Acquire::http::Proxy "http://…";`.
fn ways(dump: &str) -> impl Iterator<Item = (&str, &str)> {
    dump.lines().filter_map(|line| {
        let (key, value) = line.trim_end_matches(';').split_once(' ')?;
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        let parts = key.strip_prefix("Acquire::")?.to_lowercase();
        let wanted = parts.split("::").any(|part| WAYS.contains(&part));
        (wanted && !value.is_empty()).then_some((key, value))
    })
}

/// Absolute paths of keys that sources name.
fn keyrings(text: &str) -> Vec<String> {
    let spaced = text.replace(['=', '[', ']', ','], " ");
    let words = spaced.split_whitespace();
    let named = words.clone().zip(words.skip(1));
    let mut keys: Vec<String> = named
        .filter(|(name, path)| {
            name.trim_end_matches(':').eq_ignore_ascii_case("signed-by") && path.starts_with('/')
        })
        .map(|(_, path)| path.to_owned())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_both_kinds_of_sources() {
        let text = "deb [arch=amd64 signed-by=/etc/apt/keyrings/a.gpg] https://a.test x main\n\
                    URIs: https://b.test\nSigned-By: /usr/share/keyrings/b.gpg\n\
                    Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n";
        assert_eq!(
            keyrings(text),
            ["/etc/apt/keyrings/a.gpg", "/usr/share/keyrings/b.gpg"]
        );
    }

    #[test]
    fn proxies_and_certificates_are_taken_from_the_dump_and_nothing_else() {
        let dump = "Acquire \"\";\nAcquire::http \"\";\nAcquire::http::Proxy \"http://u:pw@p:1\";\n\
                    Acquire::http::Proxy::host.test \"DIRECT\";\nAcquire::https::CAInfo \"/ca\";\n\
                    Acquire::cdrom::mount \"/media/\";\nDPkg::Post-Invoke:: \"rm proxy\";\n\
                    Acquire::Retries \"\";\nbroken\n";
        let keys: Vec<_> = ways(dump).map(|(key, _)| key).collect();
        let want = [
            "Acquire::http::Proxy",
            "Acquire::http::Proxy::host.test",
            "Acquire::https::CAInfo",
        ];
        assert_eq!(keys, want);
    }
}
