//! The program that all sandboxes are measured with: it says when it runs, and ends. Compiled on
//! its own and static, so that any root file system will do.

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    println!("{}", now.as_nanos());
}
