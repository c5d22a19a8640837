//! Pure. How paths are written in a request and in its answer.
//!
//! The usual spelling expands `~` and variables, as clients expect, so that some names cannot be
//! written in it, and bytes that are no UTF-8 come out in a form that does not go in again. The
//! exact spelling has neither limit: whatever comes out goes in.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use barchan_jail::spelling::{exact, unescape};

use super::expand::{checked, escape, expand};
use crate::fault::{Fault, Kind};

/// A spelling of paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `~`, `$NAME` and `${NAME}` are expanded.
    #[default]
    Expanded,
    /// Nothing is expanded, and `\xHH` is a byte; a backslash itself is `\x5c`.
    Exact,
}

impl Spelling {
    /// What the query parameter `paths` asks for.
    ///
    /// # Errors
    /// When it is none of the two.
    pub(crate) fn parse(asked: Option<&[u8]>) -> Result<Self, Fault> {
        match asked {
            None | Some(b"expanded") => Ok(Self::Expanded),
            Some(b"exact") => Ok(Self::Exact),
            Some(_) => Err(Fault::new(
                Kind::BadRequest,
                "`paths` is `expanded` (the default) or `exact`",
            )),
        }
    }

    /// The path that a text names.
    ///
    /// # Errors
    /// When it is no path, or uses a variable that is not set.
    pub(crate) fn read(
        self,
        text: &[u8],
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<PathBuf, Fault> {
        match self {
            Self::Expanded => expand(text, lookup),
            Self::Exact => checked(unescape(text)),
        }
    }

    /// A path as text.
    pub(crate) fn write(self, path: &Path) -> String {
        let name = path.as_os_str().as_bytes();
        match self {
            Self::Exact => exact(name),
            Self::Expanded => escape(name),
        }
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn what_comes_out_exactly_goes_in_again() {
        for (name, text) in [
            (&b"/a/$HOME/~"[..], "/a/$HOME/~"),
            (b"~", "~"),
            (b"/bad_\xff", "/bad_\\xff"),
            (b"/bad_\\xff", "/bad_\\x5cxff"),
            (b"\\", "\\x5c"),
            ("文\\\u{e9}".as_bytes(), "文\\x5cé"),
            (b"\xe6\x96\\\xff", "\\xe6\\x96\\x5c\\xff"),
        ] {
            let path = Path::new(OsStr::from_bytes(name));
            assert_eq!(Spelling::Exact.write(path), text);
            assert_eq!(
                Spelling::Exact.read(text.as_bytes(), &|_| None).unwrap(),
                path
            );
        }
        for (text, name) in [("a\\b", &b"a\\b"[..]), ("\\x", b"\\x"), ("\\xg0", b"\\xg0")] {
            assert_eq!(unescape(text.as_bytes()), name);
        }
        assert!(Spelling::Exact.read(b"a\\x00", &|_| None).is_err());
    }

    #[test]
    fn there_are_two_spellings() {
        assert_eq!(Spelling::parse(None), Ok(Spelling::Expanded));
        assert_eq!(Spelling::parse(Some(b"exact")), Ok(Spelling::Exact));
        assert!(Spelling::parse(Some(b"")).is_err());
    }
}
