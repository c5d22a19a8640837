//! Whole directories, as tar streams through a pipe: one end for a thread that packs or unpacks,
//! the other for the connection.

use std::fs::File;
use std::io::BufWriter;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use barchan_archive::{
    Links, PackLimits, Report, Root, UnpackLimits, UnpackOptions, shown, unpack,
};
use barchan_client::Sandbox;
use barchan_wire::execd::file::FileKind;
use tokio::net::unix::pipe;

use super::counting;
use crate::output::Output;

/// Most entries of one copy.
const ENTRIES_MAX: u64 = 1_000_000;
/// Deepest directory that is copied into a sandbox.
const DEPTH_MAX: usize = 100;
/// Bytes that are written to a pipe at once.
const PIPE_BYTES: usize = 256 * 1024;
/// How many of those left out are named.
const NAMED_MAX: usize = 10;

/// Whether a path in a sandbox is a directory.
pub(super) async fn is_directory(sandbox: &Sandbox, path: &str) -> bool {
    let path = if path.is_empty() { "." } else { path };
    let infos = sandbox.info(path).await.unwrap_or_default();
    let mut infos = infos.values();
    infos.any(|info| info.kind == Some(FileKind::Directory))
}

/// Copies a local directory into a sandbox.
pub(super) async fn upload(
    sandbox: &Sandbox,
    source: &Path,
    path: &str,
    output: &Output,
) -> Result<()> {
    let to = landing(sandbox, path, last_name(source)).await;
    let from = source.display();
    // A link that is named itself is followed, as cp does.
    let whole = std::fs::canonicalize(source).with_context(|| format!("cannot open {from}"))?;
    let root = Root::open(&whole)?;
    let (writer, reader) = ends()?;
    let reader = pipe::Receiver::from_owned_fd(reader).context("cannot use a pipe")?;
    let packing = tokio::task::spawn_blocking(move || {
        let limits = PackLimits {
            entries_max: ENTRIES_MAX,
            depth_max: DEPTH_MAX,
        };
        let out = BufWriter::with_capacity(PIPE_BYTES, File::from(writer));
        root.pack(out, limits, &mut |_| {})
    });
    let bar = output.transfer(None);
    let sent = sandbox.unpack(&to, reader, counting(&bar)).await;
    bar.finish_and_clear();
    let packed = packing.await.context("packing broke off")?;
    let done = sent.with_context(|| format!("cannot copy {from} to {to}"));
    // What went wrong here first is the cause, unless all that went wrong is that nobody listened.
    match (packed, done) {
        (Err(error), Err(_)) if !is_unheard(&error) => {
            Err(error).with_context(|| format!("cannot copy {from}"))
        }
        (_, Err(error)) => Err(error),
        (packed, Ok(_)) => {
            tell(&packed?, output);
            Ok(())
        }
    }
}

/// Copies a directory of a sandbox to this machine.
// BOUNDARY: sandbox → host. Test: a_hostile_archive_writes_nothing_outside
pub(super) async fn download(
    sandbox: &Sandbox,
    path: &str,
    to: &Path,
    bytes_max: u64,
    output: &Output,
) -> Result<()> {
    if to == Path::new("-") {
        bail!("a directory cannot be copied to standard output; name a directory");
    }
    let target = destination(path, to)?;
    let shown_target = target.display().to_string();
    let download = sandbox.pack(path).await;
    let download = download.with_context(|| format!("cannot copy {path}"))?;
    let is_new = !target.exists();
    if is_new {
        std::fs::create_dir(&target).with_context(|| format!("cannot make {shown_target}"))?;
    }
    let (writer, reader) = ends()?;
    let options = UnpackOptions {
        limits: UnpackLimits {
            entries_max: ENTRIES_MAX,
            bytes_max,
        },
        links: Links::Skip,
        with_root: is_new,
    };
    let unpacking = tokio::task::spawn_blocking(move || {
        unpack(File::from(reader), &target, options, &mut |_| {})
    });
    let mut writer = pipe::Sender::from_owned_fd(writer).context("cannot use a pipe")?;
    let bar = output.transfer(None);
    let received = download.copy_to(&mut writer, counting(&bar)).await;
    drop(writer);
    bar.finish_and_clear();
    let unpacked = unpacking.await.context("unpacking broke off")?;
    let report = match (unpacked, received) {
        (Ok(report), _) => report,
        // The stream broke, which is why the archive has no end.
        (Err(_), Err(error)) if !is_pipe(&error) => {
            return Err(error).with_context(|| format!("cannot copy {path}"));
        }
        (Err(error), _) => {
            return Err(error).with_context(|| format!("cannot copy to {shown_target}"));
        }
    };
    tell(&report, output);
    Ok(())
}

/// Says what was left out, here and there.
fn tell(report: &Report, output: &Output) {
    let here = report.skipped_names.iter().map(String::as_str);
    let there = report.note.iter().flat_map(|note| note.lines().skip(1));
    let there_count = report
        .note
        .iter()
        .map(|note| note.lines().count().saturating_sub(1));
    let count = report.skipped_names.len() + there_count.sum::<usize>();
    if count == 0 {
        return;
    }
    output.note(&format!("{} left out:", count.max(report.skipped as usize)));
    for name in here.chain(there).take(NAMED_MAX) {
        output.note(&format!("  {name}"));
    }
    if count > NAMED_MAX {
        output.note("  …");
    }
}

/// The two ends of a pipe: for writing, and for reading.
fn ends() -> Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("cannot make a pipe")?;
    Ok((writer, reader))
}

/// Where a directory named `name` lands in a sandbox: below what is a directory already.
async fn landing(sandbox: &Sandbox, path: &str, name: Option<String>) -> String {
    let above = path.is_empty() || path.ends_with('/') || is_directory(sandbox, path).await;
    let path = if path.is_empty() { "." } else { path };
    match name {
        Some(name) if above => format!("{}/{name}", path.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

/// The name that a copy of a directory keeps; none for its content alone, written `folder/.`.
fn last_name(source: &Path) -> Option<String> {
    let is_content = source.as_os_str().as_encoded_bytes().ends_with(b"/.");
    let name = source.canonicalize().ok()?;
    let name = name
        .file_name()
        .filter(|_| !is_content && source != Path::new("."))?;
    Some(name.to_string_lossy().into_owned())
}

/// The local directory that a copy of `path` to `to` fills. A name from a sandbox is only ever one
/// step.
fn destination(path: &str, to: &Path) -> Result<PathBuf> {
    if !to.is_dir() || path.ends_with("/.") || path == "." || path.is_empty() {
        return Ok(to.to_owned());
    }
    let name = Path::new(path).file_name();
    let name = name.with_context(|| {
        format!(
            "`{}` names no directory; end it with /.",
            shown(path.as_bytes())
        )
    })?;
    Ok(to.join(name))
}

/// Whether packing failed only because nobody took the archive any more.
fn is_unheard(error: &barchan_archive::PackError) -> bool {
    matches!(error, barchan_archive::PackError::Write(error)
        if error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Whether a transfer failed only because the archive was not taken to its end.
fn is_pipe(error: &barchan_client::ClientError) -> bool {
    matches!(error, barchan_client::ClientError::Local(error)
        if error.kind() == std::io::ErrorKind::BrokenPipe)
}
