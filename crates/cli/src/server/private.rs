//! Starts the user's own server, once however many ask at the same time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use barchan_daemon::folder;
use barchan_wire::local;
use rustix::fs::FlockOperation;
use tokio::net::UnixStream;

/// How long a server may take until it listens, in milliseconds.
const START_MS_MAX: u64 = 30_000;
/// How long to wait while another program starts the server, in milliseconds.
const LOCK_MS_MAX: u64 = 40_000;
/// Between two looks, in milliseconds.
const POLL_MS: u64 = 5;
/// Most of the server's log that is repeated when it does not start, in bytes.
const LOG_TAIL_BYTES_MAX: u64 = 2_000;

/// Returns once a server listens on the socket of the state directory.
pub(super) async fn ensure(state_dir: &Path) -> Result<()> {
    let socket = state_dir.join(local::API_SOCKET);
    if UnixStream::connect(&socket).await.is_ok() {
        return Ok(());
    }
    barchan_server::app::check(state_dir)?;
    folder::make_private(state_dir)
        .with_context(|| format!("cannot make {}", state_dir.display()))?;
    let lock = open(
        &state_dir.join(local::PRIVATE_LOCK),
        OpenOptions::new().write(true),
    )?;
    take(&lock).await?;
    if is_served(state_dir, &socket).await? {
        return Ok(());
    }
    let log = state_dir.join(local::PRIVATE_LOG);
    let mut server = start(state_dir, &log)?;
    wait(&mut server, &socket, &log).await
}

/// Whether a server listens, once it is certain: one that is just starting or leaving holds its
/// lock and listens not yet, or no longer.
async fn is_served(state_dir: &Path, socket: &Path) -> Result<bool> {
    let path = state_dir.join(local::SERVER_LOCK);
    let lock = match folder::open_foreign(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", path.display())),
    };
    for _ in 0..LOCK_MS_MAX / POLL_MS {
        if UnixStream::connect(socket).await.is_ok() {
            return Ok(true);
        }
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared) {
            // Let go of it at once: the server that is to be started needs it.
            Ok(()) => return Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(pause()).await,
            Err(error) => return Err(error).context("cannot look at the server's lock"),
        }
    }
    bail!(
        "a server has held the state directory for {} s without listening",
        LOCK_MS_MAX / 1000
    )
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let opened = folder::open_regular_with(options.create(true).mode(0o600), path);
    opened.with_context(|| format!("cannot open {}", path.display()))
}

/// Takes the lock; the kernel lets go of it when this program ends, however it ends.
async fn take(lock: &File) -> Result<()> {
    for _ in 0..LOCK_MS_MAX / POLL_MS {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(pause()).await,
            Err(error) => return Err(error).context("cannot lock the state directory"),
        }
    }
    bail!(
        "another program has been starting the server for {} s",
        LOCK_MS_MAX / 1000
    )
}

fn start(state_dir: &Path, log: &Path) -> Result<Child> {
    let sink = open(log, OpenOptions::new().append(true))?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(&program);
    command
        .args(["serve", "--private"])
        .env(local::STATE_DIR_ENV, state_dir)
        // The key of a server elsewhere is none of its business.
        .env_remove("BARCHAN_API_KEY")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(sink.try_clone().context("cannot open the log twice")?)
        .stderr(sink)
        // Out of the terminal's job, so that Ctrl-C there does not reach it.
        .process_group(0);
    barchan_runtime::descriptors::keep_inherited();
    command
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

async fn wait(server: &mut Child, socket: &Path, log: &Path) -> Result<()> {
    for _ in 0..START_MS_MAX / POLL_MS {
        if UnixStream::connect(socket).await.is_ok() {
            return Ok(());
        }
        if let Some(status) = server.try_wait().context("cannot watch the server start")? {
            let said = tail(log).unwrap_or_default();
            bail!(
                "it ended with {status}; the end of {} says:\n{said}",
                log.display()
            );
        }
        tokio::time::sleep(pause()).await;
    }
    server
        .kill()
        .context("the server does not start and cannot be ended")?;
    bail!(
        "it did not listen within {} s; see {}",
        START_MS_MAX / 1000,
        log.display()
    )
}

fn pause() -> Duration {
    Duration::from_millis(POLL_MS)
}

fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
