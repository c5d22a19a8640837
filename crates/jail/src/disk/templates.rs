//! Empty file systems, one of each size, of which those of sandboxes are copies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;

use super::size::{check_size, resize};
use super::{BLOCK_BYTES, FOLDERS, ext4};
use crate::faults::at;

/// Nothing to recover after a crash, nothing to grow, no copies of what is lost with the disk.
const FEATURES: &str = "^has_journal,^resize_inode,sparse_super2";
/// All that a new file system must hold lies together at its start: each piece elsewhere costs a
/// copy at the start and a discard on the host's disk at the end.
const EXTRAS: &str = "lazy_itable_init=1,nodiscard,num_backup_sb=0,packed_meta_blocks=1";
/// How many block groups keep their tables together; 128 of 128 MiB are 16 GiB.
const GROUPS_TOGETHER: &str = "128";
/// Templates that are kept, one for each size.
const TEMPLATES_MAX: usize = 16;
/// Endings of the names of templates, and of those that are not finished.
const TEMPLATE: &str = "ext4";
const UNFINISHED: &str = "new";

/// Those of one folder.
#[derive(Debug)]
pub(super) struct Templates {
    folder: PathBuf,
    /// What new file systems hold, by their size.
    contents: BTreeMap<u64, Vec<Piece>>,
}

/// Bytes of a file system, and where they stand.
pub(super) type Piece = (u64, Vec<u8>);

impl Templates {
    /// Those that a folder holds, where nobody else makes any.
    pub(super) fn new(folder: &Path) -> Self {
        let templates = Self {
            folder: folder.to_owned(),
            contents: BTreeMap::new(),
        };
        // What one left that died over it.
        for path in templates.files(UNFINISHED) {
            let _ = fs::remove_file(path);
        }
        templates
    }

    /// What a new file system of this size holds.
    ///
    /// # Errors
    /// Without mke2fs; FileTooLarge for one that is larger than may be, or than the host's file
    /// system has files.
    pub(super) fn of(&mut self, size_bytes: u64) -> io::Result<&[Piece]> {
        if !self.contents.contains_key(&size_bytes) {
            check_size(size_bytes)?;
            let template = self.template(size_bytes);
            let content = template.and_then(|template| pieces(&template));
            let content = content.map_err(at("make a file system"))?;
            if self.contents.len() >= TEMPLATES_MAX {
                self.contents.clear();
            }
            self.contents.insert(size_bytes, content);
        }
        Ok(self.contents.get(&size_bytes).map_or(&[], Vec::as_slice))
    }

    /// An empty file system of this size, made once.
    fn template(&self, size_bytes: u64) -> io::Result<File> {
        let name = format!("template-{size_bytes}-{:016x}.{TEMPLATE}", edition());
        let path = self.folder.join(name);
        if let Ok(file) = File::open(&path) {
            return Ok(file);
        }
        let unfinished = path.with_extension(UNFINISHED);
        let made = self.make_template(size_bytes, &unfinished).and_then(|()| {
            self.forget_some();
            fs::rename(&unfinished, &path)
        });
        if let Err(error) = made {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        File::open(&path)
    }

    fn make_template(&self, size_bytes: u64, path: &Path) -> io::Result<()> {
        resize(&File::create(path)?, size_bytes)?;
        let content = self.content()?;
        let block = BLOCK_BYTES.to_string();
        let options = [
            "-b",
            &block,
            "-O",
            FEATURES,
            "-E",
            EXTRAS,
            "-G",
            GROUPS_TOGETHER,
            "-d",
        ];
        ext4::make(size_bytes, &options, &content, path)
    }

    /// What every new file system holds.
    fn content(&self) -> io::Result<PathBuf> {
        let content = self.folder.join("content");
        for name in FOLDERS {
            fs::create_dir_all(content.join(name))?;
        }
        Ok(content)
    }

    /// Removes templates when there are many: callers choose sizes, and must not fill the state
    /// directory by it. One that is needed again costs one run of mke2fs.
    fn forget_some(&self) {
        for path in self.files(TEMPLATE).skip(TEMPLATES_MAX - 1) {
            let _ = fs::remove_file(path);
        }
    }

    /// The files whose names end so.
    fn files(&self, ending: &str) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(move |path| path.extension().is_some_and(|it| it == ending))
    }
}

/// What a file holds, without its holes.
fn pieces(file: &File) -> io::Result<Vec<Piece>> {
    let mut found = Vec::new();
    let mut end = 0;
    while let Ok(start) = rustix::fs::seek(file, SeekFrom::Data(end)) {
        end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        found.push((start, bytes));
    }
    Ok(found)
}

/// What templates of this program are made with, as a number: those of another release stay in the
/// state directory and must not be taken for ours.
fn edition() -> u64 {
    let mut hasher = DefaultHasher::new();
    (FEATURES, EXTRAS, GROUPS_TOGETHER, FOLDERS, BLOCK_BYTES).hash(&mut hasher);
    hasher.finish()
}
