//! Finds what is in an archive that was received whole. Its maker may mean harm.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;

use sha2::{Digest as _, Sha256};
use tar::EntryType;

use super::{DOCUMENT_BYTES_MAX, OciError, invalid};

/// Most entries of an archive.
const ENTRIES_MAX: usize = 10_000;
/// Longest extended header.
const EXTENDED_BYTES_MAX: u64 = 64 * 1024;
/// Longest name that is looked at.
const NAME_BYTES_MAX: usize = 256;

/// An archive, and where in it which file is.
#[derive(Debug)]
pub struct Archive {
    file: File,
    places: HashMap<String, (u64, u64)>,
}

/// A part of the file.
#[derive(Debug)]
pub(super) struct Part<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Archive {
    /// Looks through an archive.
    ///
    /// # Errors
    /// When it is no tar archive, is cut off, has a name twice or too many.
    // BOUNDARY: image archive → store. Test: hostile_archives_are_refused
    pub fn open(file: File) -> Result<Self, OciError> {
        let length = file.metadata()?.len();
        let places = look_through(&file, length)?;
        Ok(Self { file, places })
    }

    /// A file of the archive, and its size.
    pub(super) fn find(&self, name: &str) -> Option<(Part<'_>, u64)> {
        let (at, size) = *self.places.get(name)?;
        let part = Part {
            file: &self.file,
            at,
            end: at + size,
        };
        Some((part, size))
    }

    /// A whole document.
    pub(super) fn document(&self, name: &str) -> Result<Vec<u8>, OciError> {
        let missing = || {
            invalid(format!(
                "the archive has no file {name}: it is no OCI image"
            ))
        };
        let (part, size) = self.find(name).ok_or_else(missing)?;
        if size > DOCUMENT_BYTES_MAX {
            let words = format!("{name} has more than {DOCUMENT_BYTES_MAX} bytes");
            return Err(invalid(words));
        }
        let mut text = Vec::new();
        { part }.read_to_end(&mut text)?;
        Ok(text)
    }

    /// A document of this digest and size.
    pub(super) fn verified(&self, digest: &str, size: u64) -> Result<Vec<u8>, OciError> {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
        let name = format!("blobs/sha256/{hex}");
        let text = match self.places.contains_key(&name) {
            true => self.document(&name)?,
            false => return Err(invalid(format!("the archive lacks the blob {digest}"))),
        };
        if text.len() as u64 != size {
            let found = text.len();
            let words = format!("the blob {digest} has {found} bytes and is said to have {size}");
            return Err(invalid(words));
        }
        if hex::encode(Sha256::digest(&text)) != hex {
            return Err(invalid(format!("the blob {digest} has another digest")));
        }
        Ok(text)
    }
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let got = self
            .file
            .read_at(into.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

fn look_through(file: &File, length: u64) -> Result<HashMap<String, (u64, u64)>, OciError> {
    let broken = |error: io::Error| invalid(format!("it is no whole tar archive: {error}"));
    { file }.rewind()?;
    let mut archive = tar::Archive::new(file);
    // Raw: the library would hold extended headers whole in memory, however long they are.
    let entries = archive.entries_with_seek().map_err(broken)?.raw(true);
    let mut places = HashMap::new();
    let mut renamed: Option<String> = None;
    for (number, entry) in entries.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if number >= ENTRIES_MAX {
            let words = format!("the archive has more than {ENTRIES_MAX} entries");
            return Err(invalid(words));
        }
        let size = entry.header().entry_size().map_err(broken)?;
        let at = entry.raw_file_position();
        if at.checked_add(size).is_none_or(|end| end > length) {
            return Err(invalid("the archive ends in the middle of a file"));
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XHeader {
            renamed = extended(&mut entry, size)?;
            continue;
        }
        let name = renamed.take().or_else(|| {
            let bytes = entry.header().path_bytes();
            String::from_utf8(bytes.into_owned()).ok()
        });
        let Some(name) = name.filter(|_| kind == EntryType::Regular) else {
            continue;
        };
        let name = name.strip_prefix("./").unwrap_or(&name);
        if name.len() > NAME_BYTES_MAX {
            continue;
        }
        if places.insert(name.to_owned(), (at, size)).is_some() {
            let shown: String = name.escape_debug().take(100).collect();
            return Err(invalid(format!("the archive has {shown} twice")));
        }
    }
    Ok(places)
}

/// The name that an extended header gives to the next entry.
fn extended(entry: &mut impl Read, size: u64) -> Result<Option<String>, OciError> {
    if size > EXTENDED_BYTES_MAX {
        return Err(invalid("a header in the archive is too long"));
    }
    let mut bytes = Vec::new();
    entry.take(size).read_to_end(&mut bytes)?;
    let mut name = None;
    for record in tar::PaxExtensions::new(&bytes) {
        let record = record.map_err(|error| invalid(format!("a header is damaged: {error}")))?;
        match record.key() {
            Ok("path") => name = record.value().ok().map(str::to_owned),
            Ok("size") => {
                let words = "the archive tells a size in the PAX format: pack it in the GNU format";
                return Err(invalid(words));
            }
            _ => {}
        }
    }
    Ok(name)
}
