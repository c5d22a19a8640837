//! Files that may hold a secret: their owner's alone from the first byte on.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Writes a file; one that exists only if it is to be overwritten.
pub(crate) fn write(path: &Path, text: &str, is_forced: bool) -> Result<()> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match is_forced {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{shown} exists and is left as it is; --force overwrites it");
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {shown}")),
    };
    // One that was there keeps the mode it had.
    let kept = file.set_permissions(PermissionsExt::from_mode(0o600));
    kept.and_then(|()| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {shown}"))
}
