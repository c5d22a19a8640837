//! Where the programs are that go into a sandbox: named, carried inside this one, or beside it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::config;

/// The programs on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guests {
    /// What carries sandboxes' traffic, `barchan-egress`.
    pub(crate) egress: PathBuf,
    /// The launcher, `barchan-jail`.
    pub(crate) jail: PathBuf,
    /// The daemon of a sandbox, `barchan-execd`.
    pub(crate) execd: PathBuf,
}

/// The programs as bytes of this one.
struct Embedded {
    files: [(&'static str, &'static [u8]); 3],
    digest: &'static str,
}

const EMBEDDED: Option<Embedded> = include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// Finds them; those carried inside are laid into the state directory first.
pub(crate) fn find(state_dir: &Path) -> Result<Guests> {
    if let Some(folder) = config::guests_dir() {
        return beneath(&folder).with_context(|| format!("no guests in {}", folder.display()));
    }
    if let Some(embedded) = EMBEDDED {
        let folder = state_dir.join(format!("guests/{}", embedded.digest));
        if !folder.is_dir() {
            lay_out(&embedded, &folder)
                .with_context(|| format!("cannot write the guests to {}", folder.display()))?;
        }
        return beneath(&folder);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    beneath(folder).context(
        "this program carries no guests; build it with `make build`, or name the folder that \
         holds barchan-jail, barchan-execd and barchan-egress in BARCHAN_GUESTS_DIR",
    )
}

fn beneath(folder: &Path) -> Result<Guests> {
    let guests = Guests {
        egress: folder.join("barchan-egress"),
        jail: folder.join("barchan-jail"),
        execd: folder.join("barchan-execd"),
    };
    for path in [&guests.jail, &guests.execd, &guests.egress] {
        if !path.is_file() {
            bail!("{} is missing", path.display());
        }
    }
    Ok(guests)
}

/// Writes the files. The folder appears whole or not at all, however many
/// programs do this at once.
fn lay_out(embedded: &Embedded, folder: &Path) -> std::io::Result<()> {
    let mut name = folder.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}", std::process::id()));
    let making = folder.with_file_name(name);
    fs::create_dir_all(&making)?;
    for (name, bytes) in embedded.files {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o755);
        options.open(making.join(name))?.write_all(bytes)?;
    }
    match fs::rename(&making, folder) {
        Ok(()) => Ok(()),
        // Somebody else was faster; theirs are the same bytes.
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty) => {
            fs::remove_dir_all(&making)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_laid_out_once_and_can_be_run() {
        let home = tempfile::TempDir::new().unwrap();
        let folder = home.path().join("guests/abc");
        let embedded = || Embedded {
            files: [
                ("barchan-egress", b"o"),
                ("barchan-execd", b"e"),
                ("barchan-jail", b"j"),
            ],
            digest: "abc",
        };
        lay_out(&embedded(), &folder).unwrap();
        // As the slower of two programs does.
        lay_out(&embedded(), &folder).unwrap();
        let guests = beneath(&folder).unwrap();
        assert_eq!(fs::read(&guests.jail).unwrap(), b"j");
        assert_eq!(
            fs::metadata(&guests.execd).unwrap().permissions().mode() & 0o111,
            0o111
        );
        assert_eq!(fs::read_dir(home.path().join("guests")).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_guest_is_named() {
        let home = tempfile::TempDir::new().unwrap();
        fs::write(home.path().join("barchan-jail"), "j").unwrap();
        let error = beneath(home.path()).unwrap_err().to_string();
        assert!(error.contains("barchan-execd is missing"), "{error}");
    }
}
