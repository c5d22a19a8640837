//! Pure. Texts that are replaced by others, all in one go: what was put in is not looked at again.

use aho_corasick::{AhoCorasick, MatchKind};

use super::escape;

/// Texts and what replaces them.
pub(super) struct Replacer {
    finder: AhoCorasick,
    texts: Vec<Vec<u8>>,
    replacements: Vec<Vec<u8>>,
}

impl Replacer {
    /// `None` for no text, or for more than can be looked for at once.
    pub(super) fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Self> {
        let (texts, replacements): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        if texts.is_empty() {
            return None;
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .ok()?;
        Some(Self {
            finder,
            texts,
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

    /// Where the end of some bytes begins that more bytes could make one of the texts.
    pub(super) fn open_end(&self, bytes: &[u8]) -> usize {
        let is_open = |at: &usize| {
            let end = bytes.get(*at..).unwrap_or_default();
            let begins = |text: &Vec<u8>| text.len() > end.len() && text.starts_with(end);
            self.texts.iter().any(begins)
        };
        let longest = self.texts.iter().map(Vec::len).max().unwrap_or(0);
        let first = (bytes.len() + 1).saturating_sub(longest);
        (first..bytes.len()).find(is_open).unwrap_or(bytes.len())
    }

    /// What some bytes become; `None` if they stay as they are.
    pub(super) fn replace(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let done = self.replace_until(bytes, bytes.len(), &mut out);
        if out.is_empty() && done == 0 {
            return None;
        }
        out.extend_from_slice(bytes.get(done..).unwrap_or_default());
        Some(out)
    }

    /// Replaces what begins before `until`; how much was looked at and written, which is 0 if
    /// nothing was found.
    pub(super) fn replace_until(&self, bytes: &[u8], until: usize, out: &mut Vec<u8>) -> usize {
        let mut done = 0;
        for found in self.finder.find_iter(bytes) {
            if found.start() >= until {
                break;
            }
            out.extend_from_slice(bytes.get(done..found.start()).unwrap_or_default());
            let replacement = self.replacements.get(found.pattern().as_usize());
            out.extend_from_slice(replacement.map_or(&[], Vec::as_slice));
            done = found.end();
        }
        done
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
            let replaced = one.replace(bytes.as_bytes());
            let replaced = replaced.map(|it| String::from_utf8(it).unwrap());
            assert_eq!(replaced.as_deref(), expected, "{bytes}");
        }
    }
}
