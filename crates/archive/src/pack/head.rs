//! Writes what stands around content: headers, names that do not fit into them, the end.

use std::io::Write;

use rustix::fs::Stat;
use tar::{EntryType, Header};

use super::{PackError, Packer};
use crate::Report;
use crate::frames::BLOCK;

impl<W: Write> Packer<'_, W> {
    pub(super) fn fill(&mut self, written: u64) -> Result<(), PackError> {
        let over = (written % BLOCK as u64) as usize;
        if over > 0 {
            self.out
                .write_all([0; BLOCK].get(over..).unwrap_or_default())?;
        }
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        name: &[u8],
        found: &Stat,
        target: &[u8],
    ) -> Result<(), PackError> {
        let mut header = header(EntryType::Symlink, found, 0);
        if header.set_link_name_literal(target).is_err() {
            self.long(EntryType::GNULongLink, target)?;
        }
        self.named(&mut header, name)
    }

    pub(super) fn head(
        &mut self,
        kind: EntryType,
        name: &[u8],
        found: &Stat,
        stored: u64,
    ) -> Result<(), PackError> {
        self.named(&mut header(kind, found, stored), name)
    }

    /// Writes a header under this name.
    pub(super) fn named(&mut self, header: &mut Header, name: &[u8]) -> Result<(), PackError> {
        self.report.entries += 1;
        if self.report.entries > self.limits.entries_max {
            return Err(PackError::TooMany(self.limits.entries_max));
        }
        if let Some(gnu) = header.as_gnu_mut() {
            for (place, byte) in gnu.name.iter_mut().zip(name) {
                *place = *byte;
            }
            if name.len() > gnu.name.len() {
                self.long(EntryType::GNULongName, name)?;
            }
        }
        header.set_cksum();
        Ok(self.out.write_all(header.as_bytes())?)
    }

    /// What does not fit into the next header.
    fn long(&mut self, kind: EntryType, text: &[u8]) -> Result<(), PackError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        if let Some(gnu) = header.as_gnu_mut()
            && let Some(place) = gnu.name.get_mut(..13)
        {
            place.copy_from_slice(b"././@LongLink");
        }
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(text.len() as u64 + 1);
        header.set_cksum();
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(text)?;
        self.out.write_all(&[0])?;
        self.fill(text.len() as u64 + 1)
    }

    /// Tells what was left out, in a comment that other programs pass over. It belongs to the entry
    /// behind it: some programs take an archive that ends here for a broken one.
    pub(super) fn note(&mut self) -> Result<(), PackError> {
        if self.report.skipped > 0 {
            let mut names = self.report.skipped_names.join("\n");
            names.truncate(names.floor_char_boundary(NOTE_BYTES_MAX));
            let text = format!("{} left out:\n{names}", self.report.skipped);
            let record = record("comment", &text);
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::XGlobalHeader);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(record.len() as u64);
            header.set_cksum();
            self.out.write_all(header.as_bytes())?;
            self.out.write_all(record.as_bytes())?;
            self.fill(record.len() as u64)?;
        }
        Ok(())
    }

    /// Ends the archive.
    pub(super) fn end(mut self) -> Result<Report, PackError> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.report)
    }
}

/// Longest comment about what was left out, in bytes.
const NOTE_BYTES_MAX: usize = 32 * 1024;

/// A record of an extended header, which begins with its own length.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

pub(super) fn header(kind: EntryType, found: &Stat, stored: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(found.st_mode & 0o7777);
    header.set_uid(u64::from(found.st_uid));
    header.set_gid(u64::from(found.st_gid));
    header.set_mtime(u64::try_from(found.st_mtime).unwrap_or(0));
    header.set_size(stored);
    header
}
