//! Pure. From the text of a path to the path: `~`, `$NAME` and `${NAME}`, and what no path may be.
//!
//! Nothing else is special: no `$(…)`, no quotes. Everything after the expansion means what the
//! kernel takes it to mean.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use barchan_wire::limits::PATH_BYTES_MAX;

use crate::envfile::is_name;
use crate::fault::{Fault, Kind};

/// The path that a text names.
///
/// # Errors
/// An empty, too long or NUL-carrying path, or a variable that is not set.
pub(crate) fn expand(
    text: &[u8],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, Fault> {
    if text.len() > PATH_BYTES_MAX {
        return Err(too_long(text.len()));
    }
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    if matches!(rest, [b'~'] | [b'~', b'/', ..]) {
        let home = lookup("HOME").unwrap_or_else(|| "/".to_owned());
        path.extend_from_slice(home.as_bytes());
        rest = rest.get(1..).unwrap_or_default();
    }
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        let (plain, from) = rest.split_at(at);
        path.extend_from_slice(plain);
        let Some((name, bytes)) = reference(from) else {
            path.push(b'$');
            rest = from.get(1..).unwrap_or_default();
            continue;
        };
        let Some(value) = lookup(name) else {
            let message = format!(
                "the path uses ${name}, which is not set in the sandbox; with `paths=exact` in \
                 the query nothing is expanded"
            );
            return Err(Fault::new(Kind::BadFile, message));
        };
        path.extend_from_slice(value.as_bytes());
        rest = from.get(bytes..).unwrap_or_default();
        // Here and not at the end: a long value may be named as often as the text has room for.
        if path.len() > PATH_BYTES_MAX {
            return Err(too_long(path.len()));
        }
    }
    path.extend_from_slice(rest);
    checked(path)
}

/// These bytes as a path.
///
/// # Errors
/// When they are none, too many, or hold a NUL.
pub(crate) fn checked(path: Vec<u8>) -> Result<PathBuf, Fault> {
    let message = match path.len() {
        0 => "the path is empty",
        len if len > PATH_BYTES_MAX => return Err(too_long(len)),
        _ if path.contains(&0) => "the path holds a NUL byte, which no file name can",
        _ => return Ok(PathBuf::from(OsString::from_vec(path))),
    };
    Err(Fault::new(Kind::BadFile, message))
}

fn too_long(len: usize) -> Fault {
    let message = format!("the path is {len} bytes long, {PATH_BYTES_MAX} at most");
    Fault::new(Kind::BadFile, message)
}

/// The name behind the `$` at the start, and the length of the whole reference.
fn reference(text: &[u8]) -> Option<(&str, usize)> {
    let (name, bytes) = match text.get(1..)? {
        [b'{', inside @ ..] => {
            let end = inside.iter().position(|byte| *byte == b'}')?;
            (inside.get(..end)?, end + 3)
        }
        plain => {
            let ends = |byte: &u8| *byte != b'_' && !byte.is_ascii_alphanumeric();
            let end = plain.iter().position(ends).unwrap_or(plain.len());
            (plain.get(..end)?, end + 1)
        }
    };
    let name = std::str::from_utf8(name)
        .ok()
        .filter(|name| is_name(name))?;
    Some((name, bytes))
}

/// A path for people and JSON: bytes that are no UTF-8 appear as `\xHH`.
pub(crate) fn escape(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/root".to_owned()),
            "D" => Some("/data".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn paths_are_expanded_and_nothing_is_run() {
        for (text, wanted) in [
            ("/a/../b", "/a/../b"),
            ("~", "/root"),
            ("~/x", "/root/x"),
            ("~ann/x", "~ann/x"),
            ("a~", "a~"),
            ("$D/x", "/data/x"),
            ("${D}x/$D", "/datax//data"),
            ("$(touch pwn)/a;id", "$(touch pwn)/a;id"),
            ("price$5 $", "price$5 $"),
            ("a b%41+c&d#e?.txt", "a b%41+c&d#e?.txt"),
            ("naïve 🤣 文件.txt", "naïve 🤣 文件.txt"),
        ] {
            assert_eq!(
                expand(text.as_bytes(), &lookup).unwrap(),
                PathBuf::from(wanted)
            );
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let long = "x".repeat(5000);
        for (text, part) in [
            ("", "empty"),
            ("/a\0b", "NUL"),
            ("$NOPE/x", "$NOPE"),
            ("${NOPE}", "$NOPE"),
            (long.as_str(), "5000 bytes"),
        ] {
            let fault = expand(text.as_bytes(), &lookup).unwrap_err();
            assert_eq!(fault.kind, Kind::BadFile);
            assert!(fault.message.contains(part), "{fault}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_numbers() {
        for (path, wanted) in [
            (&b"bad_\xff"[..], "bad_\\xff"),
            ("文".as_bytes(), "文"),
            (b"\xe6\x96x", "\\xe6\\x96x"),
        ] {
            assert_eq!(escape(path), wanted);
        }
    }
}
