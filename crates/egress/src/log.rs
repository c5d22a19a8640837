//! Lines on standard error, for the operator.

use std::io::{self, Write};

/// Says one line. What comes from a sandbox is quoted by whoever puts it in.
pub(crate) fn say(line: &str) {
    // A log that cannot be written is no reason to cut connections.
    let _ = writeln!(io::stderr(), "barchan-egress: {line}");
}
