//! Where the files of secrets are read: on the disk, or from what a process that may read them
//! noted.
//!
//! Settings are read by serde, which hands nothing on to the type that reads a secret, so which of
//! the two holds is kept for the thread that reads them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The text of each file, or why it has none.
pub(in crate::config) type Files = BTreeMap<PathBuf, Result<String, String>>;

#[derive(Default)]
enum Source {
    #[default]
    Disk,
    /// The disk, and what is read there is noted.
    Noting(Files),
    Given(Files),
}

thread_local! {
    static SOURCE: RefCell<Source> = RefCell::default();
}

/// The text of a file; `read` reads it from the disk.
pub(super) fn text(
    path: &Path,
    read: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    SOURCE.with_borrow_mut(|source| match source {
        Source::Disk => read(),
        Source::Noting(files) => {
            let text = read();
            files.insert(path.to_owned(), text.clone());
            text
        }
        Source::Given(files) => files.get(path).cloned().unwrap_or_else(|| {
            let shown = path.display();
            Err(format!("the secret's file {shown} was not read"))
        }),
    })
}

/// Notes what `work` reads on the disk.
pub(in crate::config) fn noted<T>(work: impl FnOnce() -> T) -> (T, Files) {
    let (done, source) = with(Source::Noting(Files::new()), work);
    match source {
        Source::Noting(files) => (done, files),
        _ => (done, Files::new()),
    }
}

/// Lets `work` read these files, and the disk not.
pub(in crate::config) fn given<T>(files: Files, work: impl FnOnce() -> T) -> T {
    with(Source::Given(files), work).0
}

fn with<T>(source: Source, work: impl FnOnce() -> T) -> (T, Source) {
    SOURCE.set(source);
    let done = work();
    (done, SOURCE.take())
}
