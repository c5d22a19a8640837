//! What the host's package clients are told: mirrors, proxies, certificates, credentials. A build
//! is given it as environment and read-only files, and none of it becomes part of an image.

mod apt;
mod netrc;
mod npmrc;
mod pip_config;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Bind;
use super::error::ImageError;
use super::seal::Secrets;

/// Where a build sees what it is given.
pub(super) const GIVEN: &str = "/run/build";

/// Where the configuration is looked for.
#[derive(Clone)]
pub struct ClientSources {
    /// The operator's environment.
    pub env: BTreeMap<String, String>,
    /// The operator's home, if there is one.
    pub home: Option<PathBuf>,
    /// `/`, or the root of another system.
    pub root: PathBuf,
}

impl std::fmt::Debug for ClientSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSources")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// The configuration as a build gets it. It holds credentials: it is never printed.
#[derive(Default)]
pub(super) struct Clients {
    pub env: BTreeMap<String, String>,
    /// Content by path beneath [`GIVEN`].
    pub files: BTreeMap<String, Vec<u8>>,
    /// Folders of the host, beneath [`GIVEN`], besides `files`.
    pub binds: Vec<Bind>,
    pub secrets: Secrets,
}

/// Longest file that is handed on.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Variables that name proxies; read in lower and upper case.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// Variables that name a file or folder of certificates.
const CERTIFICATES: [&str; 7] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
];

impl Clients {
    /// Gathers the configuration of pip, npm, apt's and everybody's proxies and certificates.
    pub(super) fn gather(sources: &ClientSources) -> Result<Self, ImageError> {
        let mut clients = Self::default();
        for name in PROXIES
            .iter()
            .flat_map(|name| [(*name).to_owned(), name.to_uppercase()])
        {
            if let Some(value) = sources.env.get(&name) {
                clients.secrets.add_url(value);
                clients.env.insert(name, value.clone());
            }
        }
        for name in CERTIFICATES {
            if let Some(value) = sources.env.get(name) {
                let handed = clients.hand_on(sources, value)?;
                clients.env.insert(name.to_owned(), handed);
            }
        }
        clients.pip(sources)?;
        clients.npm(sources)?;
        clients.netrc(sources)?;
        let resolver = sources.root.join("etc/resolv.conf");
        if let Ok(text) = read(&resolver) {
            clients.files.insert("resolv.conf".to_owned(), text);
        }
        Ok(clients)
    }

    fn pip(&mut self, sources: &ClientSources) -> Result<(), ImageError> {
        let mut settings = BTreeMap::new();
        for path in pip_config::places(sources) {
            if let Ok(text) = read(&path) {
                settings.extend(pip_config::parse(&String::from_utf8_lossy(&text)));
            }
        }
        settings.extend(pip_config::from_env(&sources.env));
        for (name, value) in settings {
            let words = value.split_whitespace().map(|word| {
                self.secrets.add_url(word);
                self.hand_on(sources, word)
            });
            let value = words.collect::<Result<Vec<_>, _>>()?.join(" ");
            self.env.insert(name, value);
        }
        Ok(())
    }

    fn npm(&mut self, sources: &ClientSources) -> Result<(), ImageError> {
        let mut text = String::new();
        for line in npmrc::lines(sources, |path| read(path).ok()) {
            line.secrets().for_each(|word| self.secrets.add(word));
            self.secrets.add_url(&line.value);
            let value = if line.names_a_file() {
                self.hand_on(sources, &line.value)?
            } else {
                line.value.clone()
            };
            text.push_str(&format!("{}={value}\n", line.key));
        }
        self.files.insert("npmrc".to_owned(), text.into_bytes());
        Ok(())
    }

    fn netrc(&mut self, sources: &ClientSources) -> Result<(), ImageError> {
        let named = sources.env.get("NETRC").map(PathBuf::from);
        let Some(path) = named.or_else(|| Some(sources.home.as_ref()?.join(".netrc"))) else {
            return Ok(());
        };
        if let Ok(text) = read(&path) {
            netrc::passwords(&String::from_utf8_lossy(&text))
                .for_each(|word| self.secrets.add(word));
            self.files.insert("netrc".to_owned(), text);
            self.env
                .insert("NETRC".to_owned(), format!("{GIVEN}/netrc"));
        }
        Ok(())
    }

    /// Where a build finds what an absolute path of the host leads to: a copy of a file, the folder
    /// itself. What is no such path stays as it is.
    fn hand_on(&mut self, sources: &ClientSources, word: &str) -> Result<String, ImageError> {
        let bare = word.strip_prefix("file://").unwrap_or(word);
        let Some(inside) = bare.strip_prefix('/') else {
            return Ok(word.to_owned());
        };
        let path = sources.root.join(inside);
        let number = self.files.len() + self.binds.len();
        let Ok(found) = fs::metadata(&path) else {
            return Ok(word.to_owned());
        };
        if found.is_dir() {
            let known = self.binds.iter().find(|bind| bind.source == path);
            let target = known.map_or_else(
                || Path::new(GIVEN).join(format!("folder-{number}")),
                |bind| bind.target.clone(),
            );
            if known.is_none() {
                self.binds.push(Bind {
                    source: path,
                    target: target.clone(),
                });
            }
            return Ok(target.display().to_string());
        }
        let text = read(&path).map_err(ImageError::disk("read", &path))?;
        // The name stays: that of a wheel says what it is.
        let own = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let same = |name: &str| name.starts_with("file-") && name.ends_with(&format!("/{own}"));
        let known = self
            .files
            .iter()
            .find(|(name, known)| same(name) && **known == text);
        if let Some((name, _)) = known {
            return Ok(format!("{GIVEN}/{name}"));
        }
        let name = format!("file-{number}/{own}");
        self.files.insert(name.clone(), text);
        Ok(format!("{GIVEN}/{name}"))
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if found.is_file() && found.len() <= FILE_BYTES_MAX {
        fs::read(path)
    } else {
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests;
