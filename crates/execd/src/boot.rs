//! What the daemon is given at its start.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;

use barchan_jail::guest::Boot;
use barchan_jail::log_ring::Writer;
use barchan_jail::standby;
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

/// Opens what the configuration names; a spare waits here until it is asked for. `None`: it never
/// will be.
///
/// # Errors
/// When something of it is missing or broken.
pub(crate) fn open(config: Config) -> io::Result<Option<Inherited>> {
    match config {
        Config::StandBy => {
            let Some(kit) = standby::enter()? else {
                return Ok(None);
            };
            let listener = StdListener::from(kit.listener);
            assemble(listener, kit.boot.into(), Some(kit.log.into()), true).map(Some)
        }
        Config::Paths {
            socket,
            boot,
            log,
            unconfined,
        } => {
            let log = log.map(|path: PathBuf| File::options().read(true).write(true).open(path));
            let listener = StdListener::bind(socket)?;
            let boot = File::open(boot)?;
            assemble(listener, boot, log.transpose()?, !unconfined).map(Some)
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
