//! Replaces an exact text in a file.
//!
//! Who reads a file through `read` sees `\n` for every line end, so a text that does not occur as
//! it was given is looked for with `\r\n` and then with `\n` at its line ends. What is put in its
//! place gets the line ends that were found.

use std::borrow::Cow;
use std::path::Path;

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use memchr::memmem;

use super::refusal::{of_fault, of_path, refused};
use super::resolve::{regular, shown};
use crate::fault::errno;
use crate::files::permission::Rights;
use crate::files::stage::Staged;
use crate::limits::REPLACE_BYTES_MAX;

/// What is to be replaced by what.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Not empty.
    pub(crate) old: String,
    /// May be empty.
    pub(crate) new: String,
    /// Whether `old` may occur more than once.
    pub(crate) all: bool,
}

/// Why a text was not changed.
#[derive(Debug, PartialEq, Eq)]
enum Unchanged {
    Missing,
    Ambiguous(u64),
    TooLarge,
}

/// Replaces in a file; how often.
///
/// # Errors
/// When the file is no text, does not hold the old one, or holds it more often than allowed.
pub(crate) fn file(path: &Path, change: &Change) -> Result<u64, Refusal> {
    if change.old.is_empty() {
        return Err(refused(
            Code::EmptyOld,
            "`old` is empty: say what to replace",
        ));
    }
    let before = content(path)?;
    let name = || shown(path);
    let (after, count) = replace(&before, change).map_err(|why| match why {
        Unchanged::Missing => refused(
            Code::StringNotFound,
            format!("`old` does not occur in {}; read the file again", name()),
        ),
        Unchanged::Ambiguous(count) => Refusal {
            count: Some(count),
            ..refused(
                Code::MultipleOccurrences,
                format!(
                    "`old` occurs {count} times in {}; add what stands around it, or replace all",
                    name()
                ),
            )
        },
        Unchanged::TooLarge => too_large(&format!("what would become of {}", name())),
    })?;
    let mut staged = Staged::new(path, Rights::default()).map_err(of_fault)?;
    staged.write(&after).map_err(of_fault)?;
    staged.commit().map_err(of_fault)?;
    Ok(count)
}

fn content(path: &Path) -> Result<String, Refusal> {
    let found = regular(path, "edit")?;
    if found.st_size.unsigned_abs() > REPLACE_BYTES_MAX {
        return Err(too_large(&shown(path)));
    }
    let bytes = std::fs::read(path).map_err(|error| of_path(errno(&error), "edit", shown(path)))?;
    String::from_utf8(bytes).map_err(|_| {
        let message = format!("cannot edit {}: it is no UTF-8 text", shown(path));
        refused(Code::NotText, message)
    })
}

fn too_large(what: &str) -> Refusal {
    let mib = REPLACE_BYTES_MAX / (1024 * 1024);
    let message = format!("{what} is larger than {mib} MiB, too large to edit");
    refused(Code::TooLarge, message)
}

fn replace(text: &str, change: &Change) -> Result<(Vec<u8>, u64), Unchanged> {
    let forms: [fn(&str) -> Cow<'_, str>; 3] = [|text| text.into(), with_returns, without_returns];
    let found = forms.into_iter().find_map(|form| {
        let old = form(&change.old);
        let count = memmem::find_iter(text.as_bytes(), old.as_bytes()).count();
        (count > 0).then(|| (old, form(&change.new), count))
    });
    let (old, new, count) = found.ok_or(Unchanged::Missing)?;
    if count > 1 && !change.all {
        return Err(Unchanged::Ambiguous(count as u64));
    }
    let size = text.len() - count * old.len() + count.saturating_mul(new.len());
    if size as u64 > REPLACE_BYTES_MAX {
        return Err(Unchanged::TooLarge);
    }
    let mut after = Vec::with_capacity(size);
    let mut rest = 0;
    for at in memmem::find_iter(text.as_bytes(), old.as_bytes()) {
        after.extend_from_slice(text.as_bytes().get(rest..at).unwrap_or_default());
        after.extend_from_slice(new.as_bytes());
        rest = at + old.len();
    }
    after.extend_from_slice(text.as_bytes().get(rest..).unwrap_or_default());
    Ok((after, count as u64))
}

fn without_returns(text: &str) -> Cow<'_, str> {
    text.replace("\r\n", "\n").into()
}

fn with_returns(text: &str) -> Cow<'_, str> {
    without_returns(text).replace('\n', "\r\n").into()
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
