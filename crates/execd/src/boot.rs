//! What the daemon is given at its start.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use barchan_jail::guest::Boot;
use barchan_jail::log_ring::Writer;
use barchan_jail::{session, standby};
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
    /// Where isolated sessions keep their files; `None`: in memory.
    pub(crate) store: Option<OwnedFd>,
    /// Whether children are confined.
    pub(crate) confine: bool,
    /// Whether this is an isolated session, which ends when its maker says so and has no
    /// entrypoint.
    pub(crate) is_session: bool,
}

/// Opens what the configuration names; a spare waits here until it is asked for. `None`: it never
/// will be.
///
/// # Errors
/// When something of it is missing or broken.
pub(crate) fn open(config: Config) -> io::Result<Option<Inherited>> {
    match config {
        Config::StandBy => {
            let Some((kit, store)) = standby::enter()? else {
                return Ok(None);
            };
            let listener = StdListener::from(kit.listener);
            let inherited = assemble(listener, kit.boot.into(), Some(kit.log.into()), true)?;
            Ok(Some(Inherited {
                store: Some(store),
                ..inherited
            }))
        }
        Config::Session => {
            let Some(kit) = session::enter()? else {
                return Ok(None);
            };
            let listener = StdListener::from(kit.listener);
            let inherited = assemble(listener, kit.boot.into(), None, true)?;
            Ok(Some(Inherited {
                is_session: true,
                ..inherited
            }))
        }
        Config::Paths {
            socket,
            boot,
            log,
            unconfined,
        } => {
            let both = |path: PathBuf| {
                let file = File::options().read(true).write(true).open(&path);
                file.map_err(at("open", &path))
            };
            let log = log.map(both).transpose()?;
            let listener = StdListener::bind(&socket).map_err(at("listen at", &socket))?;
            let boot = File::open(&boot).map_err(at("open", &boot))?;
            assemble(listener, boot, log, !unconfined).map(Some)
        }
    }
}

/// Adds what was tried to an error.
fn at<'a>(tried: &'a str, path: &'a Path) -> impl Fn(io::Error) -> io::Error + 'a {
    move |error| io::Error::new(error.kind(), format!("{tried} {}: {error}", path.display()))
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
        store: None,
        confine,
        is_session: false,
    })
}
