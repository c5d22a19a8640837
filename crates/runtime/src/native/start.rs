//! Finds the launcher of a state directory, or starts one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use barchan_jail::proto::{Answer, Hello, Message, Request, VERSION};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::line::{Heard, Line};
use super::{Settings, from_failure, internal};
use crate::{ErrorKind, RuntimeError};

/// How long to wait between attempts to get a launcher.
pub(super) const RETRY: Duration = Duration::from_millis(200);
/// How often a launcher that is starting is asked.
const KNOCK: Duration = Duration::from_millis(2);
/// How long a launcher may take to start, its predecessor's end included.
const START_MAX: Duration = Duration::from_secs(10);
/// Bytes of the launcher's log that an error quotes.
const LOG_TAIL_BYTES: usize = 2000;

/// Puts a launcher of our version on the line, and says what it can do. `learn` hears what else it
/// says meanwhile.
pub(super) async fn connect(
    settings: &Settings,
    line: &Line,
    learn: impl Fn(&Message) + Sync,
) -> Result<(Hello, Heard), RuntimeError> {
    connect_until(settings, line, &learn, Instant::now() + START_MAX).await
}

async fn connect_until(
    settings: &Settings,
    line: &Line,
    learn: &(dyn Fn(&Message) + Sync),
    until: Instant,
) -> Result<(Hello, Heard), RuntimeError> {
    let (hello, mut heard) = loop {
        let mut heard = line.connect(reach(settings).await?).await;
        match heard.during(line.call(Request::Hello), &learn).await {
            Ok(hello) => break (hello, heard),
            // One that was killed takes connections until the kernel is done with it.
            Err(_) if Instant::now() < until => tokio::time::sleep(KNOCK).await,
            Err(error) => return Err(error),
        }
    };
    match judge(hello) {
        Ok(hello) if !follows(&hello, settings) && Instant::now() < until => {
            // Only one that has nothing to lose gives way to one with the new settings.
            let idle = heard.during(line.call(Request::List), &learn).await;
            if matches!(idle, Ok(Answer::Sandboxes(all)) if all.is_empty()) {
                let _ = heard.during(line.call(Request::Leave), &learn).await;
                heard.hang_up().await;
                return Box::pin(connect_until(settings, line, learn, until)).await;
            }
            tracing::warn!(
                "the launcher keeps the host paths that it was started with, until its sandboxes \
                 are deleted and the server starts anew"
            );
            Ok((hello, heard))
        }
        Ok(hello) => Ok((hello, heard)),
        Err(error) => {
            heard.hang_up().await;
            Err(error)
        }
    }
}

/// Whether a launcher allows what these settings do.
fn follows(hello: &Hello, settings: &Settings) -> bool {
    let wanted = settings.host_paths.as_ref();
    wanted.is_none_or(|wanted| hello.host_paths == *wanted)
}

/// Whether a launcher that greets so can be worked with.
fn judge(greeting: Answer) -> Result<Hello, RuntimeError> {
    match greeting {
        Answer::Hello(hello) if hello.version == VERSION => Ok(hello),
        Answer::Hello(hello) => Err(RuntimeError::new(
            ErrorKind::Unavailable,
            format!(
                "a launcher of version {} (process {}) still serves this state directory and this \
                 program speaks version {VERSION}: delete its sandboxes with the program that made \
                 them, or end that process, which ends them too",
                hello.version, hello.pid
            ),
        )),
        Answer::Failed(failure) => Err(from_failure(failure)),
        other => Err(internal(&format!("the launcher greeted with {other:?}"))),
    }
}

/// Another connection to the launcher that is there, for whoever waits for it in a thread.
///
/// # Errors
/// When there is none.
pub(super) fn dial(settings: &Settings) -> io::Result<net::UnixStream> {
    let folder = File::open(settings.state.join("jail"))?;
    // Through the open folder, because a socket's address holds no more than 107 bytes.
    let socket = format!("/proc/self/fd/{}/launcher.sock", folder.as_raw_fd());
    net::UnixStream::connect(socket)
}

async fn reach(settings: &Settings) -> Result<UnixStream, RuntimeError> {
    let jail = settings.state.join("jail");
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&jail);
    let folder = made.and_then(|()| File::open(&jail)).map_err(|error| {
        internal(&format!(
            "prepare the state directory {}: {error}",
            jail.display()
        ))
    })?;
    // Through the open folder, because a socket's address holds no more than 107 bytes.
    let socket = format!("/proc/self/fd/{}/launcher.sock", folder.as_raw_fd());
    if let Ok(stream) = UnixStream::connect(&socket).await {
        return Ok(stream);
    }
    let mut launcher = spawn(settings, &jail)?;
    let started = async {
        loop {
            if let Ok(stream) = UnixStream::connect(&socket).await {
                return Ok(stream);
            }
            if let Ok(Some(status)) = launcher.try_wait() {
                return Err(status);
            }
            tokio::time::sleep(KNOCK).await;
        }
    };
    match tokio::time::timeout(START_MAX, started).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(status)) => Err(did_not_start(&jail, &format!("it ended with {status}"))),
        Err(_) => Err(did_not_start(&jail, "it does not answer")),
    }
}

fn spawn(settings: &Settings, jail: &Path) -> Result<Child, RuntimeError> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(jail.join("launcher.log"));
    let log = log.map_err(|error| internal(&format!("open the launcher's log: {error}")))?;
    // The launcher gets them here and from nobody later: it does not trust who asks it.
    let host_paths = settings.host_paths.iter().flatten();
    let host_paths = host_paths.flat_map(|path| [OsStr::new("--host-path"), path.as_os_str()]);
    let egress = settings.egress.as_deref();
    let egress = egress.map(|path| [OsStr::new("--egress"), path.as_os_str()]);
    Command::new(&settings.jail)
        .arg("--state")
        .arg(&settings.state)
        .arg("--execd")
        .arg(&settings.execd)
        .args(["--blanks", &settings.blanks.to_string()])
        .args(["--disk-bytes", &settings.disk_bytes.to_string()])
        .arg("--devices")
        .arg(&settings.devices)
        .args(egress.into_iter().flatten())
        .args(host_paths)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| {
            let program = settings.jail.display();
            RuntimeError::new(
                ErrorKind::Unavailable,
                format!("start the launcher {program}: {error}"),
            )
        })
}

fn did_not_start(jail: &Path, words: &str) -> RuntimeError {
    let log = fs::read(jail.join("launcher.log")).unwrap_or_default();
    let tail = log
        .get(log.len().saturating_sub(LOG_TAIL_BYTES)..)
        .unwrap_or_default();
    let last = String::from_utf8_lossy(tail);
    let last = last.lines().last().unwrap_or("its log is empty").to_owned();
    RuntimeError::new(
        ErrorKind::Unavailable,
        format!(
            "the launcher did not start ({words}): {last}; `barchan doctor` says what is missing"
        ),
    )
}
