//! Pure. Looks for credentials in what is about to become part of an image.

use std::collections::BTreeSet;
use std::fmt;

use memchr::memmem::Finder;

/// Shorter ones would be found by chance.
const BYTES_MIN: usize = 8;

/// Words that must not be in a layer. Prints as a number only.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(BTreeSet<Vec<u8>>);

impl Secrets {
    /// Adds a word, unless it is too short or too plain to tell from ordinary text: `password` is
    /// in many a file, and refusing all of them would help nobody.
    pub(crate) fn add(&mut self, word: &str) {
        let plain = word.bytes().all(|b| b.is_ascii_lowercase())
            || word.bytes().all(|b| b.is_ascii_uppercase())
            || word.bytes().all(|b| b.is_ascii_digit());
        if word.len() >= BYTES_MIN && !plain {
            self.0.insert(word.as_bytes().to_vec());
        }
    }

    /// Adds user name and password of a URL, also as they read when unescaped.
    pub(crate) fn add_url(&mut self, url: &str) {
        let Some((_, rest)) = url.split_once("://") else {
            return;
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else {
            return;
        };
        // A name alone is a token; a name beside a password is no secret.
        let secret = user_info
            .split_once(':')
            .map_or(user_info, |(_, password)| password);
        self.add(secret);
        self.add(&unescaped(secret));
    }

    /// Begins the search in one file.
    pub(crate) fn scan(&self) -> Scan<'_> {
        let longest = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let finders = self
            .0
            .iter()
            .map(|word| Finder::new(word.as_slice()))
            .collect();
        Scan {
            finders,
            longest,
            window: Vec::new(),
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// The search in one file, block by block.
pub(crate) struct Scan<'a> {
    finders: Vec<Finder<'a>>,
    longest: usize,
    window: Vec<u8>,
}

impl Scan<'_> {
    /// Whether a word ends in this block; one that is split over blocks is found too.
    pub(crate) fn finds(&mut self, block: &[u8]) -> bool {
        if self.finders.is_empty() {
            return false;
        }
        self.window.extend_from_slice(block);
        let found = self
            .finders
            .iter()
            .any(|finder| finder.find(&self.window).is_some());
        let surplus = self.window.len().saturating_sub(self.longest - 1);
        self.window.drain(..surplus);
        found
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escape = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match escape
            .and_then(|two| u8::from_str_radix(two, 16).ok())
            .filter(|_| first == b'%')
        {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        words.iter().for_each(|word| secrets.add(word));
        secrets
    }

    #[test]
    fn a_word_split_over_blocks_is_found() {
        let secrets = of(&["tok-12345", "other-secret-word"]);
        let mut scan = secrets.scan();
        assert!(!scan.finds(b"....tok-1"));
        assert!(scan.finds(b"2345...."));
    }

    #[test]
    fn text_without_it_passes() {
        let secrets = of(&["tok-12345"]);
        let mut scan = secrets.scan();
        for block in [b"tok-".as_slice(), b"1234", b"6", b"tok-1234"] {
            assert!(!scan.finds(block));
        }
    }

    #[test]
    fn short_and_plain_words_are_left_out() {
        let words = ["abc-1", "", "password", "PASSWORD", "12345678"];
        assert!(!of(&words).scan().finds(words.join(" ").as_bytes()));
    }

    #[test]
    fn a_url_gives_its_password_or_its_token() {
        for (url, word) in [
            ("https://user:pass%40word@mirror.test/simple", "pass@word"),
            ("https://token-abc@mirror.test/simple", "token-abc"),
        ] {
            let mut secrets = Secrets::default();
            secrets.add_url(url);
            assert!(
                secrets.scan().finds(format!("x{word}y").as_bytes()),
                "{url}"
            );
            assert!(
                !secrets.scan().finds(b"https://mirror.test/simple user:"),
                "{url}"
            );
        }
    }

    #[test]
    fn nothing_is_printed_of_them() {
        assert_eq!(format!("{:?}", of(&["tok-12345"])), "Secrets(1)");
    }
}
