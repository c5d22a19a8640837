//! Pure. Texts that are replaced by others, all in one go: what was put in is not looked at again.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{RewriteError, escape};

/// Texts and what replaces them.
pub(super) struct Replacer {
    finder: AhoCorasick,
    longest: usize,
    replacements: Vec<Vec<u8>>,
}

impl Replacer {
    /// `None` for no text, or for more than can be looked for at once.
    pub(super) fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Self> {
        let (texts, replacements): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let longest = texts.iter().map(Vec::len).max()?;
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The fastest kind takes hundreds of bytes for each byte of a text.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&texts)
            .ok()?;
        Some(Self {
            finder,
            longest,
            replacements,
        })
    }

    /// Texts, as they are and as they are in URLs, and the values that replace them, escaped.
    pub(super) fn of(pairs: &[(String, String)], escape: fn(&str) -> String) -> Option<Self> {
        let pairs = pairs.iter().flat_map(|(text, value)| {
            let value = escape(value).into_bytes();
            let forms = escape::forms(text).into_iter();
            forms.map(move |text| (text.into_bytes(), value.clone()))
        });
        Self::new(pairs.collect())
    }

    /// How long the longest text is, in bytes.
    pub(super) const fn longest(&self) -> usize {
        self.longest
    }

    /// What some bytes become, if that is no longer than it may be; `None` if they stay as they
    /// are.
    pub(super) fn replace(
        &self,
        bytes: &[u8],
        most: usize,
    ) -> Result<Option<Vec<u8>>, RewriteError> {
        let mut out = Vec::new();
        let done = self.replace_until(bytes, (bytes.len(), most), &mut out)?;
        if out.is_empty() && done == 0 {
            return Ok(None);
        }
        out.extend_from_slice(bytes.get(done..).unwrap_or_default());
        match out.len() > most {
            true => Err(RewriteError::Long),
            false => Ok(Some(out)),
        }
    }

    /// Replaces what begins before `until`; how much was looked at and written, which is 0 if
    /// nothing was found.
    pub(super) fn replace_until(
        &self,
        bytes: &[u8],
        (until, most): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Result<usize, RewriteError> {
        let mut done = 0;
        for found in self.finder.find_iter(bytes) {
            if found.start() >= until {
                break;
            }
            out.extend_from_slice(bytes.get(done..found.start()).unwrap_or_default());
            let replacement = self.replacements.get(found.pattern().as_usize());
            out.extend_from_slice(replacement.map_or(&[], Vec::as_slice));
            done = found.end();
            // A short text may stand there often, and its value may be long.
            if out.len() > most {
                return Err(RewriteError::Long);
            }
        }
        Ok(done)
    }
}

/// What is replaced in bodies, as their kinds have it.
pub(super) struct Bodies {
    pub(super) plain: Replacer,
    pub(super) json: Replacer,
    pub(super) form: Replacer,
}

impl Bodies {
    /// As [`Replacer::of`].
    pub(super) fn of(pairs: &[(String, String)]) -> Option<Self> {
        Some(Self {
            plain: Replacer::of(pairs, str::to_owned)?,
            json: Replacer::of(pairs, escape::json)?,
            form: Replacer::of(pairs, escape::form)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacer(pairs: &[(&str, &str)]) -> Replacer {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let pairs = pairs.iter().map(|(from, to)| (bytes(from), bytes(to)));
        Replacer::new(pairs.collect()).unwrap()
    }

    #[test]
    fn all_are_replaced_and_nothing_twice() {
        let one = replacer(&[("one", "two"), ("two", "one"), ("onetwo", "")]);
        for (bytes, expected) in [
            ("", None),
            ("on", None),
            ("one", Some("two")),
            ("a one, a two", Some("a two, a one")),
            ("onetwoone", Some("two")),
        ] {
            let replaced = one.replace(bytes.as_bytes(), 100).unwrap();
            let replaced = replaced.map(|it| String::from_utf8(it).unwrap());
            assert_eq!(replaced.as_deref(), expected, "{bytes}");
        }
        let long = replacer(&[("a", "bcd")]).replace(b"aaaa", 11);
        assert_eq!(long, Err(RewriteError::Long));
    }
}
