//! The lines of what differs, out of a stream.

use anyhow::{Context, Result, bail};
use barchan_client::Download;
use barchan_wire::lifecycle::changes::DiffLine;
use bytes::BytesMut;

/// Longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 4 << 20;

/// A stream, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    stream: Download,
    left: BytesMut,
    /// How much of what is left has no end of a line.
    seen: usize,
}

impl Lines {
    pub(super) fn new(stream: Download) -> Self {
        Self {
            stream,
            left: BytesMut::new(),
            seen: 0,
        }
    }

    /// The next line; the one that tells of the whole is the last.
    // BOUNDARY: sandbox → host. Test: what_differs_is_shown_as_lines_a_patch_and_an_archive
    pub(super) async fn next(&mut self) -> Result<DiffLine> {
        loop {
            let rest = self.left.get(self.seen..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                let line = self.left.split_to(self.seen + at + 1);
                self.seen = 0;
                return serde_json::from_slice(&line).context("the server tells a strange line");
            }
            self.seen = self.left.len();
            if self.seen > LINE_BYTES_MAX {
                bail!("the server tells a line of more than {LINE_BYTES_MAX} bytes");
            }
            match self.stream.next().await? {
                Some(piece) => self.left.extend_from_slice(&piece),
                None => bail!("the server broke off: its log says why"),
            }
        }
    }
}
