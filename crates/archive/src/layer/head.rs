//! Writes heads of entries in the PAX format, which has room for all that a layer holds.

use std::io::{self, Write};

use rustix::fs::Stat;
use tar::{EntryType, Header};

use crate::frames::BLOCK;
use crate::frames::extended::ATTRIBUTE;

/// What a plain header has room for.
const NAME_BYTES: usize = 100;
const ID_MAX: u32 = 0o7_777_777;
const SIZE_MAX: u64 = 0o77_777_777_777;

/// One entry.
pub(super) struct Head<'a> {
    pub(super) kind: EntryType,
    pub(super) name: &'a [u8],
    pub(super) link: &'a [u8],
    /// Its mode, owner and times; `None` for a mark.
    pub(super) found: Option<&'a Stat>,
    /// Bytes that follow.
    pub(super) stored: u64,
    /// Of a file of which only the parts with data follow, its size.
    pub(super) sparse: Option<u64>,
    pub(super) attributes: &'a [(Vec<u8>, Vec<u8>)],
    /// Whether it is no mark, though its name is that of one.
    pub(super) is_no_mark: bool,
}

/// Says so. No attribute of a file is written under such a name.
const NO_MARK: &[u8] = b"BARCHAN.no_mark";

impl<'a> Head<'a> {
    pub(super) fn of(kind: EntryType, name: &'a [u8], found: &'a Stat) -> Self {
        Self {
            kind,
            name,
            link: b"",
            found: Some(found),
            stored: 0,
            sparse: None,
            attributes: &[],
            is_no_mark: false,
        }
    }
}

impl Head<'_> {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let records = self.records();
        if !records.is_empty() {
            let mut header = plain(EntryType::XHeader, records.len() as u64);
            name(&mut header, b"PaxHeaders/0");
            header.set_cksum();
            out.write_all(header.as_bytes())?;
            out.write_all(&records)?;
            fill(out, records.len() as u64)?;
        }
        let mut header = plain(self.kind, self.stored.min(SIZE_MAX));
        name(&mut header, self.name);
        if let Some(place) = header.as_mut_bytes().get_mut(157..157 + NAME_BYTES) {
            copy(place, self.link);
        }
        if let Some(found) = self.found {
            header.set_mode(found.st_mode & 0o7777);
            header.set_uid(u64::from(found.st_uid.min(ID_MAX)));
            header.set_gid(u64::from(found.st_gid.min(ID_MAX)));
            let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
            header.set_mtime(seconds.min(SIZE_MAX));
        }
        header.set_cksum();
        out.write_all(header.as_bytes())
    }

    /// What the plain header has no room for.
    fn records(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut add = |key: &[u8], value: &[u8]| record(&mut all, key, value);
        if self.is_no_mark {
            add(NO_MARK, b"1");
        }
        if let Some(size) = self.sparse {
            add(b"GNU.sparse.major", b"1");
            add(b"GNU.sparse.minor", b"0");
            add(b"GNU.sparse.name", self.name);
            add(b"GNU.sparse.realsize", size.to_string().as_bytes());
        }
        if self.name.len() > NAME_BYTES || !self.name.is_ascii() {
            add(b"path", self.name);
        }
        if self.link.len() > NAME_BYTES || !self.link.is_ascii() {
            add(b"linkpath", self.link);
        }
        if self.stored > SIZE_MAX {
            add(b"size", self.stored.to_string().as_bytes());
        }
        if let Some(found) = self.found {
            if found.st_uid > ID_MAX {
                add(b"uid", found.st_uid.to_string().as_bytes());
            }
            if found.st_gid > ID_MAX {
                add(b"gid", found.st_gid.to_string().as_bytes());
            }
            let is_plain = (0..=SIZE_MAX as i64).contains(&found.st_mtime);
            if found.st_mtime_nsec != 0 || !is_plain {
                let text = time(found.st_mtime, found.st_mtime_nsec as u32);
                add(b"mtime", text.as_bytes());
            }
        }
        for (name, value) in self.attributes {
            add(&[ATTRIBUTE, name].concat(), value);
        }
        all
    }
}

/// Fills up to a whole block.
pub(super) fn fill(out: &mut impl Write, written: u64) -> io::Result<()> {
    let over = (written % BLOCK as u64) as usize;
    match over {
        0 => Ok(()),
        over => out.write_all([0; BLOCK].get(over..).unwrap_or_default()),
    }
}

fn plain(kind: EntryType, stored: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(stored);
    header
}

fn name(header: &mut Header, name: &[u8]) {
    if let Some(place) = header.as_mut_bytes().get_mut(..NAME_BYTES) {
        copy(place, name);
    }
}

fn copy(place: &mut [u8], text: &[u8]) {
    for (to, from) in place.iter_mut().zip(text) {
        *to = *from;
    }
}

/// A time that may lie before 1970, as a decimal number.
fn time(seconds: i64, nanoseconds: u32) -> String {
    match (seconds, nanoseconds) {
        (_, 0) => seconds.to_string(),
        (0.., _) => format!("{seconds}.{nanoseconds:09}"),
        (..0, _) => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds),
    }
}

/// A record of an extended header, which begins with its own length.
fn record(all: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    all.extend_from_slice(length.to_string().as_bytes());
    all.push(b' ');
    all.extend_from_slice(key);
    all.push(b'=');
    all.extend_from_slice(value);
    all.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_decimal_numbers() {
        for (seconds, nanoseconds, expected) in [
            (0, 5, "0.000000005"),
            (12, 500_000_000, "12.500000000"),
            (-1, 750_000_000, "-0.250000000"),
            (-2, 750_000_000, "-1.250000000"),
            (-2, 0, "-2"),
        ] {
            assert_eq!(time(seconds, nanoseconds), expected);
        }
    }

    #[test]
    fn records_count_themselves() {
        for size in [0, 1, 88, 89, 90, 91, 92, 990, 1000] {
            let mut all = Vec::new();
            record(&mut all, b"key", &vec![b'x'; size]);
            let read = crate::frames::records(&all).unwrap();
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].1.len(), size);
        }
    }
}
