//! The launcher's log is its standard error: a file in the state directory, whose disk may be full.

use std::io::{self, Write};

/// Says something to the operator. What cannot be written is left out: the launcher holds every
/// sandbox, and must not end for want of a log.
pub fn say(words: &str) {
    let _ = writeln!(io::stderr(), "barchan-jail: {words}");
}
