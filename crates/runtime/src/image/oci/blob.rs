//! Reads a layer: unpacks it and verifies both digests on the way.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};

use super::index::{Archive, Part};
use super::{OciError, invalid};

/// The largest window of a zstd stream, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;
const BUFFER_BYTES: usize = 256 * 1024;

/// A layer in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Digest of the blob, in hexadecimal digits.
    pub(super) digest: String,
    /// Digest of what it unpacks to, as `sha256:…`.
    pub(super) unpacked: String,
    pub(super) compression: Compression,
}

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Reads and digests.
struct Digesting<R> {
    input: R,
    digest: Sha256,
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(into)?;
        self.digest.update(into.get(..got).unwrap_or_default());
        Ok(got)
    }
}

type Raw<'a, 'b> = BufReader<&'b mut Digesting<Part<'a>>>;

impl Archive {
    /// Unpacks a layer, piece by piece, into `take`, at most `left` bytes of it, which it lessens.
    ///
    /// # Errors
    /// When it is damaged, too large or has other digests; or what `take` says.
    pub fn unpack<E: From<OciError>>(
        &self,
        layer: &Layer,
        left: &mut u64,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = format!("blobs/sha256/{}", layer.digest);
        let missing = || {
            invalid(format!(
                "the archive lacks the layer sha256:{}",
                layer.digest
            ))
        };
        let (part, _) = self.find(&name).ok_or_else(missing)?;
        let mut packed = Digesting {
            input: part,
            digest: Sha256::new(),
        };
        let mut digest = Sha256::new();
        {
            let raw = BufReader::with_capacity(BUFFER_BYTES, &mut packed);
            let mut unpacked = decoder(layer.compression, raw)?;
            let mut buffer = vec![0; BUFFER_BYTES];
            loop {
                let got = match unpacked.read(&mut buffer) {
                    Ok(got) => got,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(damaged(layer, &error).into()),
                };
                if got == 0 {
                    break;
                }
                let words = || "the image unpacks to more than it may";
                *left = left
                    .checked_sub(got as u64)
                    .ok_or_else(|| OciError::TooLarge(words().to_owned()))?;
                let piece = buffer.get(..got).unwrap_or_default();
                digest.update(piece);
                take(piece)?;
            }
        }
        // What stands behind the end of what is compressed belongs to the blob too.
        io::copy(&mut packed, &mut io::sink()).map_err(OciError::Disk)?;
        let found = hex::encode(packed.digest.finalize());
        if found != layer.digest {
            let words = format!("the layer sha256:{} has the digest {found}", layer.digest);
            return Err(invalid(words).into());
        }
        let found = format!("sha256:{}", hex::encode(digest.finalize()));
        if found != layer.unpacked {
            let said: String = layer.unpacked.escape_debug().take(80).collect();
            let words = format!("a layer unpacks to {found}, its configuration says {said}");
            return Err(invalid(words).into());
        }
        Ok(())
    }
}

fn decoder<'a, 'b: 'a>(
    compression: Compression,
    raw: Raw<'b, 'a>,
) -> Result<Box<dyn Read + 'a>, OciError> {
    Ok(match compression {
        Compression::None => Box::new(raw),
        Compression::Gzip => Box::new(MultiGzDecoder::new(raw)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    })
}

fn damaged(layer: &Layer, error: &io::Error) -> OciError {
    let how = match layer.compression {
        Compression::None => "be read",
        Compression::Gzip => "be unpacked with gzip",
        Compression::Zstd => "be unpacked with zstd",
    };
    invalid(format!(
        "the layer sha256:{} cannot {how}: {error}",
        layer.digest
    ))
}
