//! Digests of files.

use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::download::Content;
use crate::fault::{Fault, Kind, errno};
use crate::limits::BLOCK_BYTES;

/// SHA-256 of all of a file. Where the file is read from next does not change.
///
/// # Errors
/// When it cannot be read, or has no end that could be relied on.
pub(crate) fn of(content: &Content) -> Result<[u8; 32], Fault> {
    let mut hash = Sha256::new();
    match content {
        Content::Whole(bytes) => hash.update(bytes),
        Content::Endless(..) => {
            let message = "this file is made up by the kernel as it is read; it has no digest";
            return Err(Fault::new(Kind::BadFile, message));
        }
        Content::Sized(file, size) => {
            let mut block = vec![0; BLOCK_BYTES];
            let mut at = 0;
            while at < *size {
                let read = file.read_at(&mut block, at);
                let taken = read.map_err(|error| Fault::of_path(errno(&error), "read", "it"))?;
                if taken == 0 {
                    break;
                }
                hash.update(block.get(..taken).unwrap_or_default());
                at += taken as u64;
            }
        }
    }
    Ok(hash.finalize().into())
}
