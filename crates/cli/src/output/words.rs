//! Pure. Words that a terminal may be shown, whoever they come from.

use std::borrow::Cow;
use std::fmt::Write;

/// Text in which nothing steers a terminal but the colours that were put there on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(String);

impl Words {
    /// Text in a colour, or not.
    pub(super) fn coloured(text: &str, code: Option<&str>) -> Self {
        let text = harmless(text);
        Self(match code {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.into_owned(),
        })
    }

    /// Text of several lines. None of them can pass for another message: each but the first is
    /// set in.
    pub(super) fn lines(text: &str) -> Self {
        let mut shown = String::new();
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                shown.push('\n');
            }
            if at > 0 && !line.is_empty() && !line.starts_with(' ') {
                shown.push_str("  ");
            }
            shown.push_str(&harmless(line));
        }
        Self(shown)
    }

    /// These and others behind them.
    pub(crate) fn and(mut self, others: impl Into<Self>) -> Self {
        self.0.push_str(&others.into().0);
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        Self(harmless(text).into_owned())
    }
}

impl From<&String> for Words {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

/// The text with what steers a terminal written out, line ends included.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match steers(char) {
            true => shown.extend(char.escape_debug()),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// JSON that means the same and in which nothing steers a terminal.
pub(super) fn harmless_json(json: &str) -> Cow<'_, str> {
    // Outside of strings, JSON has no such character but line ends.
    let is_bare = |char| char != '\n' && steers(char);
    if !json.contains(is_bare) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        match is_bare(char) {
            // Writing to a text does not fail; all of these have four digits.
            true => drop(write!(shown, "\\u{:04x}", u32::from(char))),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal does something at this character: controls, line ends, and marks that turn
/// the direction of writing.
fn steers(char: char) -> bool {
    let turns = matches!(
        char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    char.is_control() || turns || matches!(char, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        for (text, expected) in [
            ("plain – ünïcode 漢 👩‍💻", "plain – ünïcode 漢 👩‍💻"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\x1b[2J\x1b]0;t\x07", r"\u{1b}[2J\u{1b}]0;t\u{7}"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            (
                "\u{202e}gpj\u{2066}\u{200f}",
                r"\u{202e}gpj\u{2066}\u{200f}",
            ),
            ("\u{2028}\u{85}\0", r"\u{2028}\u{85}\0"),
        ] {
            assert_eq!(harmless(text), expected);
            assert_eq!(Words::from(text).as_str(), expected);
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let text = "a\u{1b}\u{9b}\u{7f}\u{202e}\n\"é";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = harmless_json(&json);
        assert!(!shown.contains(|char| char != '\n' && steers(char)));
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [text]);
    }

    #[test]
    fn only_colours_of_ours_are_colours() {
        let shown = Words::coloured("x\x1b[0m", Some("32")).and("\x1b[31m\n");
        assert_eq!(shown.as_str(), "\x1b[32mx\\u{1b}[0m\x1b[0m\\u{1b}[31m\\n");
        assert_eq!(Words::coloured("x\n", None).as_str(), "x\\n");
    }

    #[test]
    fn no_line_of_a_message_passes_for_another() {
        let shown = Words::lines("first\nerror: faked\n  set in\n\x1b[A");
        assert_eq!(
            shown.as_str(),
            "first\n  error: faked\n  set in\n  \\u{1b}[A"
        );
    }
}
