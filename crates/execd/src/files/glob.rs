//! Pure. Patterns of file names.
//!
//! `*` any characters but `/`, `?` one of them, `[a-z]` and `[!a-z]` one of a set, `{a,b}` either,
//! `**` as a whole path component any number of components, `\` takes the next character as it is.
//! A pattern without `/` is compared with the base name, one with `/` with the path below the root.
//! Matching keeps the set of possible positions and advances it byte by byte, so no pattern makes
//! it slower than its length times the name's.

use barchan_wire::limits::PATH_BYTES_MAX;

/// One step of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Many,
    /// `**/`: any number of whole components.
    Components,
    /// `**` at the end: everything below.
    Rest,
    /// `[…]`: byte ranges, and whether they are excluded.
    Set(Vec<(u8, u8)>, bool),
}

/// A pattern, ready to be compared.
#[derive(Debug)]
pub(crate) struct Glob {
    alternatives: Vec<Vec<Token>>,
    base_name: bool,
}

/// Most forms into which `{…}` may unfold.
const ALTERNATIVES_MAX: usize = 256;
const OPEN_SET: &str = "a [ is never closed";

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, &'static str> {
        if pattern.len() > PATH_BYTES_MAX {
            return Err("it is longer than any path");
        }
        let mut alternatives = Vec::new();
        for form in unfold(pattern)? {
            alternatives.push(tokens(&form)?);
        }
        Ok(Self {
            alternatives,
            base_name: !pattern.contains(&b'/'),
        })
    }

    /// Whether a path below the root matches.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let base = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
        let name = if self.base_name {
            path.get(base..).unwrap_or_default()
        } else {
            path
        };
        self.alternatives.iter().any(|tokens| matches(tokens, name))
    }
}

/// Every form of a pattern with `{a,b}` in it.
fn unfold(pattern: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut open = vec![pattern.to_vec()];
    let mut done = Vec::new();
    while let Some(form) = open.pop() {
        let Some(edges) = braces(&form)? else {
            done.push(form);
            continue;
        };
        let before = edges
            .first()
            .and_then(|start| form.get(..*start))
            .unwrap_or_default();
        let behind = edges
            .last()
            .and_then(|end| form.get(end + 1..))
            .unwrap_or_default();
        for pair in edges.windows(2) {
            let [from, to] = pair else { continue };
            let inside = form.get(from + 1..*to).unwrap_or_default();
            open.push([before, inside, behind].concat());
        }
        if open.len() + done.len() > ALTERNATIVES_MAX {
            return Err("too many {…} alternatives");
        }
    }
    Ok(done)
}

/// Places of the first `{`, its own commas and its `}`.
fn braces(form: &[u8]) -> Result<Option<Vec<usize>>, &'static str> {
    let (mut edges, mut depth, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = form.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => at = set_end(form, at).ok_or(OPEN_SET)?,
            b'{' => {
                depth += 1;
                if depth == 1 {
                    edges.push(at);
                }
            }
            b',' if depth == 1 => edges.push(at),
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    edges.push(at);
                    return Ok(Some(edges));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if depth > 0 {
        Err("a { is never closed")
    } else {
        Ok(None)
    }
}

/// Where the set that starts at `open` ends; a `]` right after its start is a member.
fn set_end(form: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    if matches!(form.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    let first = at;
    while let Some(byte) = form.get(at) {
        match byte {
            b']' if at > first => return Some(at),
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    None
}

fn tokens(form: &[u8]) -> Result<Vec<Token>, &'static str> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(byte) = form.get(at) {
        let starts_component = at == 0 || form.get(at - 1) == Some(&b'/');
        match byte {
            b'*' if starts_component && form.get(at..at + 3) == Some(b"**/") => {
                tokens.push(Token::Components);
                at += 2;
            }
            b'*' if starts_component && form.get(at..) == Some(b"**") => {
                tokens.push(Token::Rest);
                at += 1;
            }
            b'*' => tokens.push(Token::Many),
            b'?' => tokens.push(Token::One),
            b'[' => {
                let end = set_end(form, at).ok_or(OPEN_SET)?;
                tokens.push(set(form.get(at + 1..end).unwrap_or_default()));
                at = end;
            }
            b'\\' => {
                at += 1;
                tokens.push(Token::Byte(*form.get(at).ok_or("it ends with a \\")?));
            }
            byte => tokens.push(Token::Byte(*byte)),
        }
        at += 1;
    }
    Ok(tokens)
}

fn set(inside: &[u8]) -> Token {
    let (excluded, members) = match inside {
        [b'!' | b'^', members @ ..] => (true, members),
        members => (false, members),
    };
    let plain: Vec<u8> = members
        .iter()
        .filter(|byte| **byte != b'\\')
        .copied()
        .collect();
    let mut ranges = Vec::new();
    let mut rest = plain.as_slice();
    loop {
        match rest {
            [low, b'-', high, after @ ..] => {
                ranges.push((*low, *high));
                rest = after;
            }
            [one, after @ ..] => {
                ranges.push((*one, *one));
                rest = after;
            }
            [] => return Token::Set(ranges, excluded),
        }
    }
}

fn matches(tokens: &[Token], name: &[u8]) -> bool {
    let mut now = vec![false; tokens.len() + 1];
    let mut next = now.clone();
    enter(tokens, &mut now, 0);
    for byte in name {
        next.fill(false);
        for (place, token) in tokens.iter().enumerate() {
            if now.get(place) == Some(&true) {
                step(tokens, &mut next, place, token, *byte);
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    now.last() == Some(&true)
}

/// Marks a place, and those behind tokens that may match nothing.
fn enter(tokens: &[Token], places: &mut [bool], place: usize) {
    let mut place = place;
    loop {
        if let Some(mark) = places.get_mut(place) {
            *mark = true;
        }
        match tokens.get(place) {
            Some(Token::Many | Token::Components | Token::Rest) => place += 1,
            _ => return,
        }
    }
}

/// Advances one place over one byte.
fn step(tokens: &[Token], next: &mut [bool], place: usize, token: &Token, byte: u8) {
    match token {
        Token::Byte(wanted) if *wanted == byte => enter(tokens, next, place + 1),
        Token::One if byte != b'/' => enter(tokens, next, place + 1),
        Token::Many if byte != b'/' => enter(tokens, next, place),
        Token::Rest => enter(tokens, next, place),
        // Inside a component only its end leads on; a mark without what follows means "inside".
        Token::Components if byte == b'/' => enter(tokens, next, place),
        Token::Components => {
            if let Some(mark) = next.get_mut(place) {
                *mark = true;
            }
        }
        Token::Set(ranges, excluded) if byte != b'/' => {
            let inside = ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&byte));
            if inside != *excluded {
                enter(tokens, next, place + 1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        for (pattern, path, wanted) in [
            ("**", "a/b/c.txt", true),
            ("*", ".hidden", true),
            ("*.py", "src/a/b.py", true),
            ("*.py", "src/a/b.pyc", false),
            ("b.?y", "src/b.py", true),
            ("src/**/*.py", "src/b.py", true),
            ("src/**/*.py", "src/a/c/b.py", true),
            ("src/**/*.py", "lib/src/b.py", false),
            ("**/test_*.py", "test_a.py", true),
            ("**/test_*.py", "x/y/test_a.py", true),
            ("**/test_*.py", "x/mytest_a.py", false),
            ("a/**", "a/b/c", true),
            ("a/*", "a/b/c", false),
            ("a/*/c", "a/b/c", true),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("*.{rs,toml}", "x/Cargo.lock", false),
            ("{a,b{c,d}}/x", "bd/x", true),
            ("[a-c]*[!0-9]", "b1x", true),
            ("[a-c]*[!0-9]", "b11", false),
            ("[]x]", "]", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a**b", "axyb", true),
            ("文*", "x/文件.txt", true),
            ("", "x", false),
        ] {
            let glob = Glob::new(pattern.as_bytes()).unwrap();
            assert_eq!(glob.matches(path.as_bytes()), wanted, "{pattern} on {path}");
        }
    }

    #[test]
    fn broken_patterns_are_refused() {
        let many = "{a,b}".repeat(12);
        for pattern in ["[a", "{a,b", "a\\", &many] {
            assert!(Glob::new(pattern.as_bytes()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_its_length() {
        let glob = Glob::new("*a".repeat(200).as_bytes()).unwrap();
        assert!(
            !glob.matches(
                "a".repeat(4000)
                    .replace("aaaaaaaaaa", "aaaaaaaaab")
                    .as_bytes()
            )
        );
    }
}
