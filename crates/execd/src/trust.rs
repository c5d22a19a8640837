//! Has the programs of a sandbox believe its own authority, which signs for the hosts whose
//! requests get credentials outside of it.
//!
//! There is no one place that all programs look at. So the authority stands beside the others in
//! the system's bundle, and the variables of those that bring a bundle of their own name that one.
//! All of it belongs to the sandbox, which may put anything in its place: nothing here waits for a
//! pipe, and a failure keeps nobody from starting.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use barchan_jail::guest::Trust;
use rustix::fs::OFlags;

mod java;

/// Where the authority stands by itself: as clients of the contract look for it, and where the
/// tools that make the system's bundle anew do.
const AUTHORITY: &str = "/opt/opensandbox/mitmproxy-ca-cert.pem";
const AUTHORITY_OF_SYSTEM: &str = "/usr/local/share/ca-certificates/barchan.crt";
/// What Java reads.
const JAVA_STORE: &str = "/opt/opensandbox/truststore.jks";
/// The bundles of distributions; the first is made where there is none.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Variables that name a bundle: of OpenSSL, Python, curl, git, pip, AWS, Nix, gRPC, Deno, Cargo.
const VARIABLES: [&str; 10] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "DENO_CERT",
    "CARGO_HTTP_CAINFO",
];
/// Node adds what this names to its own.
const NODE: &str = "NODE_EXTRA_CA_CERTS";
const JAVA: &str = "JAVA_TOOL_OPTIONS";
/// Between these stands what was put into a bundle, to be found again.
const BEGIN: &str = "# The authority of this sandbox, which Barchan put here.\n";
const END: &str = "# Here ends what Barchan put here.\n";
/// Largest bundle that is read, in bytes.
const BUNDLE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Has programs below `root` believe an authority, and adds to their environment what they need for
/// it, where the sandbox says nothing else. What could not be done is told in words.
pub(crate) fn establish(
    root: &Path,
    trust: &Trust,
    environment: &mut BTreeMap<String, String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut tried = |path: &str, done: io::Result<()>| {
        if let Err(error) = done {
            faults.push(format!("programs may not believe {path}: {error}"));
        }
    };
    let authority = trust.authority.as_bytes();
    tried(AUTHORITY, put(&below(root, AUTHORITY), authority));
    // Only tools that make the bundle anew look there, and some images have no such place.
    let _ = put(&below(root, AUTHORITY_OF_SYSTEM), authority);
    let is_there = |path: &&str| below(root, path).exists();
    let bundle = BUNDLES.iter().copied().find(is_there);
    let bundle = bundle.unwrap_or(BUNDLES[0]);
    tried(bundle, add(&below(root, bundle), trust));
    let named = VARIABLES.iter().chain([&NODE]);
    let named: BTreeSet<String> = named
        .filter_map(|name| environment.get(*name).cloned())
        .filter(|path| path.starts_with('/') && path != bundle)
        .collect();
    for path in &named {
        tried(path, add(&below(root, path), trust));
    }
    let mut default = |name: &str, value: &str| {
        environment
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    };
    VARIABLES.iter().for_each(|name| default(name, bundle));
    default(NODE, AUTHORITY);
    if has_java(root, environment) && !environment.contains_key(JAVA) {
        let store = read(&below(root, bundle)).map(|text| java::store(&text));
        let done = store.and_then(|store| put(&below(root, JAVA_STORE), &store));
        let options = format!(
            "-Djavax.net.ssl.trustStore={JAVA_STORE} -Djavax.net.ssl.trustStorePassword={}",
            java::PASSWORD
        );
        if done.is_ok() {
            environment.insert(JAVA.to_owned(), options);
        }
        tried(JAVA_STORE, done);
    }
    faults
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn has_java(root: &Path, environment: &BTreeMap<String, String>) -> bool {
    let home = environment
        .get("JAVA_HOME")
        .map(|it| format!("{it}/bin/java"));
    let usual = ["/usr/bin/java", "/opt/java/openjdk/bin/java"].map(str::to_owned);
    let mut all = home.into_iter().chain(usual);
    all.any(|path| below(root, &path).exists())
}

/// Adds the authority to a bundle, or makes one.
fn add(path: &Path, trust: &Trust) -> io::Result<()> {
    // The bundle may be a link to where it is kept.
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let before = match read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => trust.roots.clone().into_bytes(),
        read => read?,
    };
    let after = with_block(&before, &trust.authority);
    match after == before {
        true => Ok(()),
        false => put(&path, &after),
    }
}

/// A bundle with the authority at its end, and without an older one.
fn with_block(bundle: &[u8], authority: &str) -> Vec<u8> {
    let find = |text: &str, from: usize| {
        let rest = bundle.get(from..).unwrap_or_default();
        memchr::memmem::find(rest, text.as_bytes()).map(|at| from + at)
    };
    let old = find(BEGIN, 0).and_then(|from| Some((from, find(END, from)? + END.len())));
    let (before, after) = match old {
        Some((from, until)) => (bundle.get(..from), bundle.get(until..)),
        None => (Some(bundle), None),
    };
    let mut all = [before.unwrap_or_default(), after.unwrap_or_default()].concat();
    if !all.is_empty() && !all.ends_with(b"\n") {
        all.push(b'\n');
    }
    all.extend_from_slice(BEGIN.as_bytes());
    all.extend_from_slice(authority.trim_end().as_bytes());
    all.push(b'\n');
    all.extend_from_slice(END.as_bytes());
    all
}

/// Reads a regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // BOUNDARY: sandbox → host, never waiting. Test: nothing_in_the_way_holds_it_up
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > BUNDLE_BYTES_MAX {
        let words = "it is no file, or too large a one";
        return Err(io::Error::new(ErrorKind::InvalidData, words));
    }
    let mut bytes = Vec::new();
    file.take(BUNDLE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a file in the place of another, whole or not at all, as readable as that one was.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut name = OsString::from(".barchan-");
    name.push(path.file_name().ok_or(ErrorKind::InvalidInput)?);
    let beside = folder.join(name);
    // One that was left behind by a kill, or put there to be written through.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).open(&beside)?;
    let mode = match fs::symlink_metadata(path) {
        Ok(old) => {
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            old.mode() & 0o777
        }
        Err(_) => 0o644,
    };
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    let written = file.write_all(bytes);
    let done = written.and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}

#[cfg(test)]
mod tests;
