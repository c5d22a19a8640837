//! `barchan init-config`: a settings file with every setting explained.

use anyhow::{Result, bail};
use barchan_server::config::{EXAMPLES, Settings};

use crate::args::InitConfig;
use crate::output::Output;
use crate::owned;

pub(super) fn run(flags: &InitConfig, output: &Output) -> Result<()> {
    let Some(text) = Settings::example(&flags.example) else {
        bail!(
            "there is no example `{}`; there are: {}",
            flags.example,
            EXAMPLES.join(", ")
        );
    };
    // An API key may be written into it.
    owned::write(&flags.path, &text, flags.force)?;
    let path = flags.path.display();
    output.note(&format!(
        "wrote {path}; start with: barchan serve --config {path}"
    ));
    Ok(())
}
