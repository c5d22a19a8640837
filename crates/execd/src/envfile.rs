//! Pure. The file of environment settings that commands may append to while the sandbox runs.
//!
//! One `NAME=value` after another. In single quotes a value is taken as it is and may span lines;
//! in double quotes `\\ \" \$ \n \r \t` are escapes; without quotes it ends with its line. Outside
//! single quotes `$NAME` and `${NAME}` stand for settings already known. Lines that are no setting
//! are passed over: the file belongs to the sandbox's user and a slip in it must not stop commands.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use crate::limits::EXPANDED_BYTES_MAX;

/// The settings of `text`, the last one of a name winning; `known` resolves names set elsewhere.
pub(crate) fn parse(
    text: &str,
    known: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let expanded = Cell::new(EXPANDED_BYTES_MAX);
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.split_inclusive('\n').next().unwrap_or(rest);
        let trimmed = line.trim_start();
        let trimmed = trimmed
            .strip_prefix("export ")
            .map_or(trimmed, str::trim_start);
        let Some((name, _)) = trimmed.split_once('=').filter(|(name, _)| is_name(name)) else {
            rest = rest.get(line.len()..).unwrap_or_default();
            continue;
        };
        let value_at = line.len() - trimmed.len() + name.len() + 1;
        let lookup = |name: &str| {
            let room = expanded.get();
            let found = settings.get(name).map(Cow::Borrowed);
            let found = found.or_else(|| (room > 0).then(|| known(name)).flatten().map(Cow::Owned));
            let left = room.checked_sub(found.as_ref()?.len());
            expanded.set(left.unwrap_or(0));
            left.and(found).map(Cow::into_owned)
        };
        let (value, after) = value(rest.get(value_at..).unwrap_or_default(), &lookup);
        settings.insert(name.to_owned(), value);
        rest = after;
    }
    settings
}

/// Whether a text can name a setting that a shell understands.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// A value and what stands behind its line. A quote that is never closed is a part of the value.
fn value<'a>(text: &'a str, known: &dyn Fn(&str) -> Option<String>) -> (String, &'a str) {
    if let Some(open) = text.strip_prefix('\'')
        && let Some((value, after)) = open.split_once('\'')
    {
        return (value.to_owned(), after_line(after));
    }
    if let Some(open) = text.strip_prefix('"')
        && let Some((value, after)) = double_quoted(open, known)
    {
        return (value, after_line(after));
    }
    let line = text.split_inclusive('\n').next().unwrap_or_default();
    let value = expand(line.trim_end_matches(['\n', '\r']).trim_end(), known);
    (value, text.get(line.len()..).unwrap_or_default())
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, after)| after)
}

/// The value up to the closing quote, and what stands behind it.
fn double_quoted<'a>(
    text: &'a str,
    known: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, &'a str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\', '$'])?;
        let (plain, from) = rest.split_at(at);
        value.push_str(plain);
        if let Some(after) = from.strip_prefix('"') {
            return Some((value, after));
        }
        if let Some(escaped) = from.strip_prefix('\\') {
            let letter = escaped.chars().next()?;
            match letter {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                '\\' | '"' | '$' => value.push(letter),
                other => value.extend(['\\', other]),
            }
            rest = escaped.get(letter.len_utf8()..).unwrap_or_default();
        } else {
            let (replacement, after) = reference(from, known);
            value.push_str(&replacement);
            rest = after;
        }
    }
}

fn expand(text: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    let mut value = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (plain, from) = rest.split_at(at);
        let (replacement, after) = reference(from, known);
        value.push_str(plain);
        value.push_str(&replacement);
        rest = after;
    }
    value + rest
}

/// What the `$` at the start of `text` stands for, and what comes behind it. An unknown name stands
/// for itself: a password with a `$` in it is likelier than a reference to nothing.
fn reference<'a>(text: &'a str, known: &dyn Fn(&str) -> Option<String>) -> (String, &'a str) {
    let behind = text.get(1..).unwrap_or_default();
    let open = behind.strip_prefix('{');
    let inside = open.unwrap_or(behind);
    let end = inside.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let (name, after) = inside.split_at(end.unwrap_or(inside.len()));
    let after = match open {
        Some(_) => after.strip_prefix('}'),
        None => Some(after),
    };
    match (
        Some(name).filter(|name| is_name(name)).and_then(known),
        after,
    ) {
        (Some(value), Some(after)) => (value, after),
        _ => ("$".to_owned(), behind),
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_meant() {
        for (text, name, wanted) in [
            ("A=plain\n", "A", Some("plain")),
            ("A=plain", "A", Some("plain")),
            ("A=\n", "A", Some("")),
            ("A=''\n", "A", Some("")),
            ("A='l1\nl2'\nB=x\n", "A", Some("l1\nl2")),
            ("A='l1\nB=no'\nB=yes\n", "B", Some("yes")),
            (r#"A='it"s $HOME \n'"#, "A", Some(r#"it"s $HOME \n"#)),
            (
                r#"A="it's \"q\" \\ \n\t \$HOME $HOME ${HOME}x""#,
                "A",
                Some("it's \"q\" \\ \n\t $HOME /root /rootx"),
            ),
            ("PATH=/opt/bin:$PATH\n", "PATH", Some("/opt/bin:/bin")),
            ("P=a\nQ=$P-b\n", "Q", Some("a-b")),
            ("A=$NOPE and $5 $\n", "A", Some("$NOPE and $5 $")),
            ("export A=x\r\n", "A", Some("x")),
            ("# A=1\n\nnonsense\nB C=2\nA=3\n", "A", Some("3")),
            ("A=1\nA=2\n", "A", Some("2")),
            ("A='open\nB=1\n", "A", Some("'open")),
            ("A='open\nB=1\n", "B", Some("1")),
            ("1A=x\n", "1A", None),
        ] {
            let known = |name: &str| match name {
                "HOME" => Some("/root".to_owned()),
                "PATH" => Some("/bin".to_owned()),
                _ => None,
            };
            let settings = parse(text, &known);
            assert_eq!(settings.get(name).map(String::as_str), wanted, "{text:?}");
        }
    }
}
