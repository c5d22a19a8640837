//! A stream through the proxy, counted while it is open.

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

    /// Counts bytes that went into one.
    pub(super) fn inwards(&self, bytes: usize) {
        self.0.bytes_in.inc_by(bytes as u64);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
