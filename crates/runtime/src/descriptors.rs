//! What this process was handed by its caller.

/// Keeps inherited descriptors from everything that this process starts from now on. A server that
/// outlives its caller would hold that one's locks and pipes, and whoever waits for them.
pub fn keep_inherited() {
    barchan_jail::sys::close_from_on_exec(3);
}
