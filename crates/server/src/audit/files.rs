//! Files that only grow, until the next one takes their place.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Sizes;

/// The newest file and the older ones of one kind: `changes.jsonl`, `changes.1.jsonl`, …
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    name: &'static str,
    sizes: Sizes,
    open: Option<Newest>,
}

#[derive(Debug)]
struct Newest {
    file: File,
    /// How much of it is whole lines.
    bytes: u64,
}

/// Makes the folder, for its owner alone.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The path of a file; 0 is the newest.
pub(super) fn path(folder: &Path, name: &str, number: u64) -> PathBuf {
    match number {
        0 => folder.join(format!("{name}.jsonl")),
        _ => folder.join(format!("{name}.{number}.jsonl")),
    }
}

/// The numbers of all files of a kind, the newest first.
pub(super) fn numbers(folder: &Path, name: &str) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let file = entry?.file_name();
        let rest = file.to_str().and_then(|file| file.strip_prefix(name));
        let number = match rest.and_then(|rest| rest.strip_suffix(".jsonl")) {
            Some("") => Some(0),
            Some(number) => number.strip_prefix('.').and_then(|it| it.parse().ok()),
            None => None,
        };
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

impl Files {
    pub(super) fn new(folder: &Path, name: &'static str, sizes: Sizes) -> Self {
        Self {
            folder: folder.to_owned(),
            name,
            sizes,
            open: None,
        }
    }

    /// Opens the newest file, or makes it.
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.open = Some(self.reopen()?);
        Ok(())
    }

    /// Writes a line whole or not at all.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut newest = match self.open.take() {
            Some(newest) => newest,
            None => self.reopen()?,
        };
        let length = line.len() as u64;
        if newest.bytes > 0 && newest.bytes.saturating_add(length) > self.sizes.file_bytes_max {
            self.make_room()?;
            newest = self.reopen()?;
        }
        if let Err(error) = newest.file.write_all(line) {
            // A full disk may have taken half of it. The file is opened anew for the next line.
            newest.file.set_len(newest.bytes).ok();
            return Err(error);
        }
        newest.bytes += length;
        self.open = Some(newest);
        Ok(())
    }

    fn reopen(&self) -> io::Result<Newest> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(path(&self.folder, self.name, 0))?;
        if file.metadata()?.file_type().is_fifo() {
            // Nobody reads it, so that a write would wait for ever.
            return Err(io::Error::new(ErrorKind::InvalidData, "it is a pipe"));
        }
        let mut bytes = file.metadata()?.len();
        if bytes > 0 {
            // A server that was killed, or a full disk, may have left half a line.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Newest { file, bytes })
    }

    /// Moves each file one number on; those that are too many go.
    fn make_room(&self) -> io::Result<()> {
        let kept = self.sizes.files_max.max(1);
        for number in numbers(&self.folder, self.name)?.into_iter().rev() {
            let from = path(&self.folder, self.name, number);
            let done = if number.saturating_add(1) >= kept {
                std::fs::remove_file(&from)
            } else {
                std::fs::rename(&from, path(&self.folder, self.name, number + 1))
            };
            match done {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
