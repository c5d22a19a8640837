//! `barchan-jail`: the resident launcher of sandboxes.
//!
//! Zone: privileged (or an ordinary user in a namespace of its own). One per state directory, made
//! by the server, and it outlives a killed server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use barchan_jail::launcher::{self, Options};
use barchan_jail::log;

fn main() -> ExitCode {
    let options = match parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(words) => return complain(&words),
    };
    match launcher::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string()),
    }
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(name) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("{} needs a value", name.display()))?;
        let number = || value.to_str().and_then(|text| text.parse::<u64>().ok());
        let span = || number().and_then(|it| u32::try_from(it).ok());
        let wrong = || format!("{} takes a number", name.display());
        match name.to_str() {
            Some("--blanks") => options.blanks = number().ok_or_else(wrong)? as usize,
            Some("--disk-bytes") => options.disk_bytes = number().ok_or_else(wrong)?,
            // No server says these two.
            Some("--still-ms") => options.still_ms = span().ok_or_else(wrong)?,
            Some("--comparing-ms") => options.comparing_ms = span().ok_or_else(wrong)?,
            Some("--state") => options.state = PathBuf::from(value),
            Some("--execd") => options.execd = PathBuf::from(value),
            Some("--egress") => options.egress = Some(PathBuf::from(value)),
            Some("--host-path") => options.host_paths.push(PathBuf::from(value)),
            Some("--devices") => options.devices = PathBuf::from(value),
            _ => return Err(format!("unknown option {}", name.display())),
        }
    }
    if options.state.as_os_str().is_empty() || options.execd.as_os_str().is_empty() {
        return Err("--state and --execd are needed; the server starts this program".to_owned());
    }
    Ok(options)
}

fn complain(words: &str) -> ExitCode {
    log::say(words);
    ExitCode::FAILURE
}
