//! What the daemon is given at its start.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;

use barchan_jail::guest::{BOOT_FD, Boot, LISTENER_FD, LOG_FD};
use barchan_jail::log_ring::Writer;
use barchan_jail::sys::duplicate_to;
use tokio::net::UnixListener;

use crate::config::Config;

/// Largest boot file, in bytes.
const BOOT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Everything that comes from outside.
#[derive(Debug)]
pub(crate) struct Inherited {
    /// Where callers connect.
    pub(crate) listener: UnixListener,
    /// What to start.
    pub(crate) boot: Boot,
    /// Where the entrypoint's output goes.
    pub(crate) log: Option<Writer>,
    /// Whether children are confined.
    pub(crate) confine: bool,
}

/// Opens what the configuration names.
///
/// # Errors
/// When something of it is missing or broken.
pub(crate) fn open(config: Config) -> io::Result<Inherited> {
    match config {
        Config::Inherited => {
            let listener = StdListener::from(inherited(LISTENER_FD)?);
            let boot = File::from(inherited(BOOT_FD)?);
            let log = File::from(inherited(LOG_FD)?);
            assemble(listener, boot, Some(log), true)
        }
        Config::Paths {
            socket,
            boot,
            log,
            unconfined,
        } => {
            let log = log.map(|path: PathBuf| File::options().read(true).write(true).open(path));
            let listener = StdListener::bind(socket)?;
            assemble(listener, File::open(boot)?, log.transpose()?, !unconfined)
        }
    }
}

fn assemble(
    listener: StdListener,
    boot: File,
    log: Option<File>,
    confine: bool,
) -> io::Result<Inherited> {
    let mut text = Vec::new();
    boot.take(BOOT_BYTES_MAX).read_to_end(&mut text)?;
    listener.set_nonblocking(true)?;
    Ok(Inherited {
        listener: UnixListener::from_std(listener)?,
        boot: serde_json::from_slice(&text)?,
        log: log.map(Writer::new).transpose()?,
        confine,
    })
}

/// A descriptor that was inherited under a number. Standard input is the one whose number safe code
/// may name, and nothing else uses it here, so it serves as the way in.
fn inherited(number: i32) -> io::Result<OwnedFd> {
    duplicate_to(number, 0)?;
    io::stdin().as_fd().try_clone_to_owned()
}
