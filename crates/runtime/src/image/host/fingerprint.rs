//! Which system this host is: by its package database, and quickly by its files' dates.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::image::error::ImageError;
use crate::image::manifest::sha256;
use crate::image::store::entries;

/// What lists a system's packages; the first that is there counts.
const DATABASES: [&str; 6] = [
    "var/lib/dpkg/status",
    "usr/lib/sysimage/rpm/rpmdb.sqlite",
    "var/lib/rpm/rpmdb.sqlite",
    "var/lib/rpm/Packages",
    "lib/apk/db/installed",
    "var/lib/pacman/local",
];

/// Whose change may change the image.
const WATCHED: [&str; 14] = [
    "bin",
    "lib",
    "usr/bin",
    "usr/local/bin",
    "usr/lib/os-release",
    "etc/os-release",
    "etc/alternatives",
    "etc/ld.so.cache",
    "etc/ssl/certs",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/ca-trust/extracted/pem",
    "etc/fonts/conf.d",
    "etc/localtime",
    "etc/mime.types",
];

/// What is seen of the watched files and folders: inode, size and date of each, where it is there.
/// It differs whenever one of them does. Taken for each sandbox that is made, so it is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glance(Vec<Option<(u64, u64, i64, i64)>>);

impl Glance {
    /// Some twenty looks at the disk.
    pub(super) fn at(root: &Path) -> Self {
        let look = |path: &&str| {
            let found = fs::metadata(root.join(path)).ok()?;
            Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
        };
        Self(watched().map(look).collect())
    }

    /// The digest of it that is kept beside what was made of the host.
    pub(super) fn print(&self) -> String {
        let mut text = format!("{}\n", super::skeleton::VERSION);
        for (path, found) in watched().zip(&self.0) {
            if let Some((inode, size, s, ns)) = found {
                let _ = writeln!(text, "{path} {inode} {size} {s}.{ns}");
            }
        }
        sha256(text.as_bytes())
    }
}

fn watched() -> impl Iterator<Item = &'static &'static str> {
    DATABASES.iter().chain(&WATCHED)
}

/// Digest of the package database and the release file.
pub(super) fn packages(root: &Path) -> Result<String, ImageError> {
    let release = ["etc/os-release", "usr/lib/os-release"];
    let release = release
        .iter()
        .find_map(|path| fs::read(root.join(path)).ok());
    let database = match DATABASES
        .iter()
        .map(|path| root.join(path))
        .find(|path| path.exists())
    {
        Some(path) if path.is_dir() => {
            let mut names = entries(&path)?;
            names.sort();
            names.join("\n").into_bytes()
        }
        Some(path) => fs::read(&path).map_err(ImageError::disk("read", &path))?,
        None => listing(root)?.into_bytes(),
    };
    let parts = [sha256(&release.unwrap_or_default()), sha256(&database)];
    Ok(sha256(parts.join("\n").as_bytes()))
}

/// For systems without a package database: names, sizes and dates of programs and libraries.
fn listing(root: &Path) -> Result<String, ImageError> {
    let mut text = String::new();
    for folder in [
        "usr/bin",
        "usr/sbin",
        "usr/lib",
        "usr/lib64",
        "usr/local/bin",
        "usr/local/lib",
    ] {
        let path = root.join(folder);
        let mut names = if path.is_dir() {
            entries(&path)?
        } else {
            Vec::new()
        };
        names.sort();
        for name in names {
            if let Ok(found) = fs::symlink_metadata(path.join(&name)) {
                let _ = writeln!(text, "{folder}/{name} {} {}", found.size(), found.mtime());
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(status: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["var/lib/dpkg", "usr/bin", "usr/lib"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("usr/lib/os-release"), "ID=test\n").unwrap();
        fs::write(root.path().join("usr/bin/tool"), "1").unwrap();
        if let Some(status) = status {
            fs::write(root.path().join("var/lib/dpkg/status"), status).unwrap();
        }
        root
    }

    #[test]
    fn the_digest_is_that_of_packages_and_release() {
        let (one, same, other) = (host(Some("a")), host(Some("a")), host(Some("b")));
        assert_eq!(
            packages(one.path()).unwrap(),
            packages(same.path()).unwrap()
        );
        assert_ne!(
            packages(one.path()).unwrap(),
            packages(other.path()).unwrap()
        );
        fs::write(same.path().join("usr/lib/os-release"), "ID=newer\n").unwrap();
        assert_ne!(
            packages(one.path()).unwrap(),
            packages(same.path()).unwrap()
        );
    }

    #[test]
    fn without_a_database_the_programs_count() {
        let root = host(None);
        let before = packages(root.path()).unwrap();
        fs::write(root.path().join("usr/bin/tool"), "22").unwrap();
        assert_ne!(before, packages(root.path()).unwrap());
    }

    #[test]
    fn an_installed_package_is_seen_at_a_glance() {
        let root = host(Some("a"));
        let before = Glance::at(root.path());
        assert_eq!(before, Glance::at(root.path()));
        fs::write(root.path().join("var/lib/dpkg/status"), "ab").unwrap();
        let after = Glance::at(root.path());
        assert_ne!(before, after);
        assert_ne!(before.print(), after.print());
    }
}
