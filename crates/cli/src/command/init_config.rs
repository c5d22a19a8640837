//! `barchan init-config`: a settings file with every setting explained.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result, bail};
use barchan_server::config::{EXAMPLES, Settings};

use crate::args::InitConfig;
use crate::output::Output;

pub(super) fn run(flags: &InitConfig, output: &Output) -> Result<()> {
    let Some(text) = Settings::example(&flags.example) else {
        bail!(
            "there is no example `{}`; there are: {}",
            flags.example,
            EXAMPLES.join(", ")
        );
    };
    let path = flags.path.display();
    // An API key may be written into it, so it is the owner's alone from its first byte on.
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match flags.force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = match options.open(&flags.path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{path} exists and is left as it is; --force overwrites it");
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {path}")),
    };
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write {path}"))?;
    output.note(&format!(
        "wrote {path}; start with: barchan serve --config {path}"
    ));
    Ok(())
}
