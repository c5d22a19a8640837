//! Pure. What a snapshot is made of besides files, as the configuration of an image and back.

use std::collections::{BTreeMap, HashMap};

use barchan_wire::id::SnapshotId;
use oci_spec::image::{
    Arch, Config, ConfigBuilder, ImageConfiguration, ImageConfigurationBuilder, Os, RootFsBuilder,
};

use super::{ON_HOST, OciError, architecture, invalid};
use crate::image::{Manifest, PATH_DEFAULT, Saved, store::path_of};

/// A snapshot that is to become an image.
#[derive(Debug)]
pub struct Described<'a> {
    /// What it is made of.
    pub saved: &'a Saved,
    /// When it was taken: a date as RFC 3339 has it.
    pub created: &'a str,
    /// Whether it lacks the system of the host on which it stands.
    pub without_host: bool,
}

/// What an image says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Digest of its manifest, as `sha256:…`.
    pub digest: String,
    /// Whether it stands on the host's system.
    pub on_host: bool,
    pub(super) env: BTreeMap<String, String>,
    pub(super) entrypoint: Vec<String>,
    pub(super) cwd: String,
    pub(super) user: String,
    /// Digests of its layers as they are unpacked, the lowest first.
    pub(super) unpacked: Vec<String>,
}

/// Most variables and words, and bytes in them.
const WORDS_MAX: usize = 10_000;
const WORDS_BYTES_MAX: usize = 1024 * 1024;

impl Described<'_> {
    /// The configuration of an image with these layers, the lowest first, by the digests that they
    /// have unpacked.
    pub(super) fn configuration(
        &self,
        layers: Vec<String>,
    ) -> Result<ImageConfiguration, OciError> {
        let Saved {
            image,
            entrypoint,
            env,
            cwd,
            user,
            ..
        } = self.saved;
        let mut all = image.env.clone();
        all.insert("PATH".to_owned(), path_of(&image.path, PATH_DEFAULT));
        all.extend(env.clone());
        let env: Vec<String> = all
            .iter()
            .map(|(name, it)| format!("{name}={it}"))
            .collect();
        let mut config = ConfigBuilder::default().env(env);
        if !entrypoint.is_empty() {
            config = config.entrypoint(entrypoint.clone());
        }
        if !cwd.is_empty() {
            config = config.working_dir(cwd.clone());
        }
        if !user.is_empty() {
            config = config.user(user.clone());
        }
        if self.without_host {
            let labels = [(ON_HOST.to_owned(), "true".to_owned())];
            config = config.labels(HashMap::from(labels));
        }
        let built = config.build().and_then(|config| {
            let rootfs = RootFsBuilder::default().diff_ids(layers).build()?;
            ImageConfigurationBuilder::default()
                .architecture(Arch::from(architecture()))
                .os(Os::Linux)
                .created(self.created)
                .config(config)
                .rootfs(rootfs)
                .build()
        });
        built.map_err(|error| invalid(format!("the snapshot cannot be described: {error}")))
    }
}

impl Foreign {
    /// Reads the configuration of an image.
    pub(super) fn read(digest: String, image: &ImageConfiguration) -> Result<Self, OciError> {
        let (os, machine) = (image.os().to_string(), image.architecture().to_string());
        if os != "linux" || machine != architecture() {
            let own = architecture();
            let words = format!("the image is for {os}/{machine}, and this host is linux/{own}");
            return Err(OciError::Platform(words));
        }
        let none = Config::default();
        let config = image.config().as_ref().unwrap_or(&none);
        let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let on_host = config.labels().as_ref().and_then(|it| it.get(ON_HOST));
        let entrypoint = [words(config.entrypoint()), words(config.cmd())].concat();
        let env = variables(&words(config.env()))?;
        let all = env.iter().flat_map(|(name, value)| [name, value]);
        check_words(all.chain(&entrypoint))?;
        let cwd = config.working_dir().clone().unwrap_or_default();
        let user = config.user().clone().unwrap_or_default();
        check_words([&cwd, &user])?;
        if !cwd.is_empty() && !cwd.starts_with('/') {
            return Err(invalid("the image's working directory is no absolute path"));
        }
        Ok(Self {
            digest,
            on_host: on_host.is_some_and(|it| it == "true"),
            env,
            entrypoint,
            cwd: if cwd.is_empty() { "/".to_owned() } else { cwd },
            user,
            unpacked: image.rootfs().diff_ids().clone(),
        })
    }

    /// What a snapshot made of it remembers.
    #[must_use]
    pub fn saved(self, id: &SnapshotId, bytes: u64) -> Saved {
        Saved {
            stack: vec![id.clone()],
            image: Manifest {
                name: "imported".to_owned(),
                digest: self.digest,
                base: None,
                on_host: self.on_host,
                layers: Vec::new(),
                env: BTreeMap::new(),
                path: Vec::new(),
                entrypoint: Vec::new(),
                created_unix_s: 0,
                recipe_digest: String::new(),
                pinned: !self.on_host,
                bytes,
            },
            entrypoint: self.entrypoint,
            env: self.env,
            cwd: self.cwd,
            user: self.user,
            bytes,
        }
    }
}

fn variables(list: &[String]) -> Result<BTreeMap<String, String>, OciError> {
    let pairs = list.iter().map(|line| {
        let pair = line.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair
            .ok_or_else(|| invalid("the image's environment has a line that is no NAME=value"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn check_words<'a>(words: impl IntoIterator<Item = &'a String>) -> Result<(), OciError> {
    let (mut count, mut bytes) = (0, 0);
    for word in words {
        (count, bytes) = (count + 1, bytes + word.len());
        if word.contains('\0') {
            return Err(invalid("the image's configuration holds a NUL byte"));
        }
    }
    match count > WORDS_MAX || bytes > WORDS_BYTES_MAX {
        true => Err(invalid("the image's environment or entrypoint is too long")),
        false => Ok(()),
    }
}

/// The numbers of a user as images name it, where it is named by numbers: `1000`, `1000:100`.
#[must_use]
pub fn ids(user: &str) -> (Option<u32>, Option<u32>) {
    let (user, group) = user.split_once(':').unwrap_or((user, ""));
    let known = |name: &str| match name {
        "root" => Some(0),
        name => name.parse().ok().filter(|id| *id < 65_536),
    };
    match known(user) {
        // The daemon's own.
        None | Some(0) => (None, None),
        user => (user, known(group)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_their_numbers() {
        for (user, expected) in [
            ("", (None, None)),
            ("root", (None, None)),
            ("0:0", (None, None)),
            ("1000", (Some(1000), None)),
            ("1000:100", (Some(1000), Some(100))),
            ("1000:root", (Some(1000), Some(0))),
            ("somebody", (None, None)),
            ("70000", (None, None)),
        ] {
            assert_eq!(ids(user), expected, "{user}");
        }
    }
}
