//! `barchan cp`: files into a sandbox or out of it.

mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use barchan_client::{Progress, Sandbox};
use barchan_wire::execd::file::{Mode, Permission, UploadMetadata};
use indicatif::ProgressBar;
use tokio::fs::{self, File};

use crate::args::{Cp, Global};
use crate::output::Output;
use crate::parse::{Place, landing, place};
use crate::server;
use crate::stop::Stop;

pub(super) async fn run(global: &Global, flags: &Cp, output: &Output) -> Result<u8> {
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    tokio::select! {
        done = copy(global, flags, output) => done.map(|()| 0),
        code = stop.asked() => Ok(code),
    }
}

async fn copy(global: &Global, flags: &Cp, output: &Output) -> Result<()> {
    match (place(&flags.source), place(&flags.destination)) {
        (Place::Local(source), Place::Sandbox { id, path }) => {
            let sandbox = sandbox(global, &id).await?;
            if flags.recursive && source.is_dir() {
                return tree::upload(&sandbox, &source, &path, output).await;
            }
            upload(&sandbox, &source, &path, output).await
        }
        (Place::Sandbox { id, path }, Place::Local(destination)) => {
            let sandbox = sandbox(global, &id).await?;
            if flags.recursive && tree::is_directory(&sandbox, &path).await {
                let most = flags.max_bytes;
                return tree::download(&sandbox, &path, &destination, most, output).await;
            }
            download(&sandbox, &path, &destination, output).await
        }
        (Place::Local(_), Place::Local(_)) => {
            bail!("one of the two must be in a sandbox, written ID:/path")
        }
        (Place::Sandbox { .. }, Place::Sandbox { .. }) => {
            bail!("copying from sandbox to sandbox takes two steps: out with one, in with another")
        }
    }
}

async fn sandbox(global: &Global, id: &str) -> Result<Sandbox> {
    let client = server::connect(global).await?;
    let id = server::find(&client, id).await?;
    Ok(client.sandbox(&id))
}

async fn upload(sandbox: &Sandbox, source: &Path, path: &str, output: &Output) -> Result<()> {
    if source == Path::new("-") {
        let metadata = UploadMetadata {
            path: path.to_owned(),
            ..UploadMetadata::default()
        };
        let bar = output.transfer(None);
        sandbox
            .upload(&metadata, tokio::io::stdin(), counting(&bar))
            .await?;
        bar.finish_and_clear();
        return Ok(());
    }
    let shown = source.display();
    let file = File::open(source)
        .await
        .with_context(|| format!("cannot open {shown}"))?;
    let about = file
        .metadata()
        .await
        .with_context(|| format!("cannot look at {shown}"))?;
    if !about.is_file() {
        bail!("{shown} is no regular file; copy a folder with --recursive");
    }
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let mode =
        Mode::from_bits(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777);
    let metadata = UploadMetadata {
        path: landing(path, &name),
        permission: Permission {
            mode: Some(mode),
            ..Permission::default()
        },
    };
    let bar = output.transfer(Some(about.len()));
    let done = sandbox.upload(&metadata, file, counting(&bar)).await;
    bar.finish_and_clear();
    done.with_context(|| format!("cannot copy {shown} to {}", metadata.path))
}

async fn download(sandbox: &Sandbox, path: &str, to: &Path, output: &Output) -> Result<()> {
    let download = sandbox
        .download(path)
        .await
        .with_context(|| format!("cannot copy {path}"))?;
    let bar = output.transfer(download.size_bytes);
    if to == Path::new("-") {
        let done = download.copy_to(&mut output.pipe(), counting(&bar)).await;
        bar.finish_and_clear();
        return done
            .map(drop)
            .with_context(|| format!("cannot copy {path}"));
    }
    let partial = Partial::beside(&destination(path, to).await?);
    let shown = partial.whole.display().to_string();
    let mut file = File::create(&partial.path)
        .await
        .with_context(|| format!("cannot write {}", partial.path.display()))?;
    let done = download.copy_to(&mut file, counting(&bar)).await;
    bar.finish_and_clear();
    done.with_context(|| format!("cannot copy {path} to {shown}"))?;
    partial
        .complete()
        .await
        .with_context(|| format!("cannot write {shown}"))
}

/// A file that takes its name only once it is whole, and goes away if it never is.
pub(super) struct Partial {
    path: PathBuf,
    whole: PathBuf,
    is_complete: bool,
}

impl Partial {
    pub(super) fn beside(whole: &Path) -> Self {
        let mut name = whole.file_name().unwrap_or_default().to_os_string();
        name.push(".partial");
        Self {
            path: whole.with_file_name(name),
            whole: whole.to_owned(),
            is_complete: false,
        }
    }

    /// Where it is written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn complete(mut self) -> std::io::Result<()> {
        fs::rename(&self.path, &self.whole).await?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_complete {
            // It may never have been made; either way there is nobody left to tell.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// The file that a copy of `path` to `to` writes. A name from a sandbox is only ever one step.
// BOUNDARY: sandbox → host. Test: a_copy_lands_in_its_folder_and_nowhere_else
async fn destination(path: &str, to: &Path) -> Result<PathBuf> {
    if !fs::metadata(to).await.is_ok_and(|it| it.is_dir()) {
        return Ok(to.to_owned());
    }
    let name = Path::new(path).file_name();
    let name =
        name.with_context(|| format!("`{path}` names no file; name one in {}", to.display()))?;
    Ok(to.join(name))
}

pub(super) fn counting(bar: &Arc<ProgressBar>) -> Progress {
    let bar = Arc::clone(bar);
    Box::new(move |bytes| bar.inc(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_copy_lands_in_its_folder_and_nowhere_else() {
        let folder = tempfile::TempDir::new().unwrap();
        let to = folder.path();
        for (path, expected) in [("/tmp/a.png", Some("a.png")), ("/a/../b", Some("b"))] {
            let found = destination(path, to).await.ok();
            assert_eq!(found, expected.map(|name| to.join(name)), "{path}");
        }
        for path in ["/tmp/..", "..", "/", ""] {
            assert!(destination(path, to).await.is_err(), "{path}");
        }
        assert_eq!(
            destination("/a", &to.join("new")).await.unwrap(),
            to.join("new")
        );
    }

    #[tokio::test]
    async fn half_a_file_is_not_left_behind() {
        let folder = tempfile::TempDir::new().unwrap();
        let whole = folder.path().join("a");
        for is_complete in [false, true] {
            let partial = Partial::beside(&whole);
            std::fs::write(&partial.path, "x").unwrap();
            if is_complete {
                partial.complete().await.unwrap();
            } else {
                drop(partial);
            }
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(left.len(), usize::from(is_complete));
        }
        assert!(whole.exists());
    }
}
