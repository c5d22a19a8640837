//! Pure. Whether a line holds what is looked for.
//!
//! The usual search is for one plain text, which needs no regular expression: whole buffers are
//! looked through at once. Everything else is tried line by line. The engine is used as it is,
//! because what makes it know every script of the world costs each idle daemon more memory than all
//! the rest of it: `\w` and `\d` know them, `\p{…}` does not exist, and letters beyond ASCII have
//! no case.

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::execd::fs::search::Grep;
use grep_matcher::{LineTerminator, Match, Matcher, NoCaptures, NoError};
use memchr::memmem;
use regex_automata::util::syntax;
use regex_automata::{Input, meta};

use crate::fs::refusal::refused;
use crate::limits::PATTERN_BYTES_MAX;

/// What is looked for.
#[derive(Debug)]
pub(super) enum LineMatcher {
    Text(Box<memmem::Finder<'static>>),
    Expression(meta::Regex),
}

impl LineMatcher {
    /// Reads a request. Several lines are alternatives, and empty ones among them nothing.
    ///
    /// # Errors
    /// For a regular expression that makes no sense or is too large.
    pub(super) fn new(asked: &Grep) -> Result<Self, Refusal> {
        let mut lines: Vec<&str> = asked.pattern.lines().filter(|it| !it.is_empty()).collect();
        if let ([text], false, false) = (&lines[..], asked.regex, asked.ignore_case) {
            return Ok(Self::Text(Box::new(memmem::Finder::new(text).into_owned())));
        }
        if lines.is_empty() {
            lines.push("");
        }
        let patterns: Vec<String> = lines
            .iter()
            .map(|line| match asked.regex {
                true => (*line).to_owned(),
                false => escaped(line),
            })
            .collect();
        let syntax = syntax::Config::new()
            .utf8(false)
            .multi_line(true)
            .crlf(true)
            .unicode(!asked.ignore_case)
            .case_insensitive(asked.ignore_case);
        let limits = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(PATTERN_BYTES_MAX))
            .onepass_size_limit(Some(PATTERN_BYTES_MAX));
        let built = meta::Builder::new()
            .configure(limits)
            .syntax(syntax)
            .build_many(&patterns);
        built.map(Self::Expression).map_err(|error| {
            let why = error
                .syntax_error()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let message = format!("the pattern cannot be searched for: {why}");
            refused(Code::InvalidPattern, message)
        })
    }
}

/// A text as a regular expression.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

impl Matcher for LineMatcher {
    type Captures = NoCaptures;
    type Error = NoError;

    fn find_at(&self, text: &[u8], from: usize) -> Result<Option<Match>, NoError> {
        Ok(match self {
            Self::Text(finder) => text
                .get(from..)
                .and_then(|rest| finder.find(rest))
                .map(|at| Match::new(from + at, from + at + finder.needle().len())),
            Self::Expression(regex) => regex
                .search(&Input::new(text).range(from..))
                .map(|found| Match::new(found.start(), found.end())),
        })
    }

    fn new_captures(&self) -> Result<NoCaptures, NoError> {
        Ok(NoCaptures::new())
    }

    /// Only of a plain text it is certain that it holds no line end.
    fn line_terminator(&self) -> Option<LineTerminator> {
        matches!(self, Self::Text(_)).then(|| LineTerminator::byte(b'\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, regex: bool, ignore_case: bool, line: &str) -> bool {
        let matcher = LineMatcher::new(&Grep {
            pattern: pattern.to_owned(),
            regex,
            ignore_case,
            ..Grep::default()
        });
        matcher.unwrap().is_match(line.as_bytes()).unwrap()
    }

    #[test]
    fn lines_match_as_told() {
        for (pattern, regex, ignore_case, line, wanted) in [
            ("a.c", false, false, "xa.cx", true),
            ("a.c", false, false, "abc", false),
            ("A.C", false, true, "a.c", true),
            ("A.C", false, true, "abc", false),
            ("[{(^$|\\#~- &", false, true, "[{(^$|\\#~- &", true),
            ("<b>\n'c'", false, false, "'c'", true),
            ("é", false, true, "é", true),
            ("a.c", true, false, "abc", true),
            ("^a$", true, false, "a\r", true),
            (r"\d+\b", true, false, "x ٣", true),
            (r"\bword\b", true, false, "a word.", true),
            ("(?i)ABC", true, true, "abc", true),
            ("a|b", true, false, "b", true),
            ("", false, false, "", true),
            ("", true, true, "x", true),
        ] {
            let found = matches(pattern, regex, ignore_case, line);
            assert_eq!(found, wanted, "{pattern:?} {regex} {ignore_case} {line:?}");
        }
    }
}
