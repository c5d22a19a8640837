//! A stream through the proxy, counted while it is open.

use barchan_daemon::splice::Way;

use crate::observe::Streams;

/// One stream, until it is dropped.
pub(super) struct Counted(Streams);

impl Counted {
    /// Counts one more.
    pub(super) fn open(streams: &Streams) -> Self {
        streams.open.inc();
        Self(streams.clone())
    }

    /// Counts bytes that left a sandbox.
    pub(super) fn out(&self, bytes: usize) {
        self.0.bytes_out.inc_by(bytes as u64);
    }

    /// Counts bytes that went into one, or left it.
    pub(super) fn moved(&self, way: Way, bytes: usize) {
        match way {
            Way::Far => self.0.bytes_in.inc_by(bytes as u64),
            Way::Near => self.out(bytes),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
