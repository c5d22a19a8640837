//! An archive in a file that nobody else can reach.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use barchan_client::Download;
use indicatif::ProgressBar;
use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 256 * 1024;

/// An archive on its way into a file without a name, which goes with the program.
pub(super) struct Spool {
    file: tokio::fs::File,
    bytes: u64,
    bytes_max: u64,
}

impl Spool {
    /// Begins, where the content is to lie in the end if that can be: there is room for it.
    pub(super) fn new(dir: &Path, bytes_max: u64) -> Result<Self> {
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
        let usual = std::env::temp_dir();
        let places = [dir, above.unwrap_or(Path::new(".")), &usual];
        let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let mut made = places.iter().map(|place| openat(CWD, *place, flags, mode));
        let Some(file) = made.find_map(Result::ok) else {
            let (dir, usual) = (dir.display(), usual.display());
            bail!(
                "cannot make a file without a name in {dir} or {usual}; let TMPDIR name a folder"
            );
        };
        Ok(Self {
            file: tokio::fs::File::from_std(File::from(file)),
            bytes: 0,
            bytes_max,
        })
    }

    /// Takes what a server sends.
    pub(super) async fn receive(
        &mut self,
        mut download: Download,
        bar: &ProgressBar,
    ) -> Result<()> {
        while let Some(piece) = download.next().await? {
            self.take(&piece, bar).await?;
        }
        Ok(())
    }

    /// Takes a file, or standard input.
    pub(super) async fn copy(&mut self, path: &Path, bar: &ProgressBar) -> Result<()> {
        if path == Path::new("-") {
            return self.read(&mut tokio::io::stdin(), bar).await;
        }
        let opened = tokio::fs::File::open(path).await;
        let mut file = opened.with_context(|| format!("cannot open {}", path.display()))?;
        self.read(&mut file, bar).await
    }

    async fn read(&mut self, from: &mut (impl AsyncRead + Unpin), bar: &ProgressBar) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let taken = from
                .read(&mut piece)
                .await
                .context("cannot read the archive")?;
            if taken == 0 {
                return Ok(());
            }
            self.take(piece.get(..taken).unwrap_or_default(), bar)
                .await?;
        }
    }

    async fn take(&mut self, piece: &[u8], bar: &ProgressBar) -> Result<()> {
        self.bytes += piece.len() as u64;
        if self.bytes > self.bytes_max {
            let most = self.bytes_max;
            bail!("the archive has more than {most} bytes; nothing is done (see --max-bytes)");
        }
        bar.inc(piece.len() as u64);
        let done = self.file.write_all(piece).await;
        done.context("cannot keep the archive for the review")
    }

    pub(super) async fn finish(mut self) -> Result<File> {
        let done = self.file.flush().await;
        done.context("cannot keep the archive for the review")?;
        Ok(self.file.into_std().await)
    }
}
