//! Pure. Which names a pattern means.
//!
//! Without `/` it is compared with base names at any depth. With `/` it is compared component by
//! component with the path below the root, and `**` stands for any number of directories. A name
//! that begins with a dot is matched only by a component that does. `{…}` is unfolded first, as a
//! shell would; the rest of a component is a glob.
//!
//! The places in the pattern that a path has reached are kept while a walk goes down, so that
//! directories in which nothing can match are never entered, and no pattern is slow.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use globset::{GlobBuilder, GlobMatcher};

use super::refusal::refused;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;
/// Most forms that `{…}` may unfold to.
const FORMS_MAX: usize = 1000;
/// Most components of a form: their places and the end are the bits of a number.
const PARTS_MAX: usize = 63;

/// A pattern, ready to be compared.
#[derive(Debug)]
pub(super) struct Pattern {
    forms: Vec<Vec<Part>>,
    base_name: bool,
}

/// One component of a form.
#[derive(Debug, Clone)]
enum Part {
    /// `**`
    AnyDepth,
    /// Anything else, and whether it begins with a dot.
    Name(Arc<Name>, bool),
}

/// What a name is compared with. The common ones need no compiled glob.
#[derive(Debug)]
enum Name {
    Literal(String),
    EndsWith(String),
    Glob(GlobMatcher),
}

/// The places that a directory has reached, for each form.
#[derive(Debug, Clone)]
pub(super) struct Places(Vec<u64>);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// For one that makes no sense, leaves the root, or unfolds to too many forms.
    pub(super) fn new(text: &str) -> Result<Self, Refusal> {
        let invalid = |why: &str| {
            let shown: String = text.chars().take(100).collect();
            refused(
                Code::InvalidPattern,
                format!("the pattern {shown:?} makes no sense: {why}"),
            )
        };
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(invalid("it needs from 1 to 4096 bytes"));
        }
        if text.split(['/', '\\']).any(|part| part == "..") {
            return Err(invalid("`..` would leave the directory that is searched"));
        }
        let forms = unfold(text).ok_or_else(|| {
            let message = format!("the pattern stands for more than {FORMS_MAX} others");
            refused(Code::PatternTooBroad, message)
        })?;
        let base_name = !text.contains('/');
        let mut known = HashMap::new();
        let mut read = Vec::new();
        for form in &forms {
            if let Some(parts) = parts(form, &mut known).map_err(|why| invalid(&why))? {
                read.push(parts);
            }
        }
        Ok(Self {
            forms: read,
            base_name,
        })
    }

    /// The places of the root.
    pub(super) fn root(&self) -> Places {
        if self.base_name {
            return Places(Vec::new());
        }
        Places(self.forms.iter().map(|form| closed(form, 1)).collect())
    }

    /// The places of a directory in one with these places; `None` where nothing can match.
    pub(super) fn enter(&self, places: &Places, name: &OsStr) -> Option<Places> {
        if self.base_name {
            return Some(places.clone());
        }
        let inside = self.forms.iter().zip(&places.0).map(|(form, from)| {
            let to = step(form, *from, name);
            // The end has nothing below it.
            closed(form, to & !(1 << form.len()))
        });
        let inside = Places(inside.collect());
        inside.0.iter().any(|places| *places != 0).then_some(inside)
    }

    /// Whether a file in a directory with these places matches.
    pub(super) fn accepts(&self, places: &Places, name: &OsStr) -> bool {
        if self.base_name {
            let is_name = |form: &Vec<Part>| form.iter().all(|part| part.matches(name));
            return self.forms.iter().any(is_name);
        }
        let mut both = self.forms.iter().zip(&places.0);
        both.any(|(form, from)| step(form, *from, name) >> form.len() & 1 == 1)
    }
}

impl Part {
    fn matches(&self, name: &OsStr) -> bool {
        let hidden = name.as_bytes().first() == Some(&b'.');
        match self {
            Self::AnyDepth => !hidden,
            Self::Name(wanted, dotted) => (*dotted || !hidden) && wanted.matches(name),
        }
    }
}

impl Name {
    fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Literal(text) => name.as_bytes() == text.as_bytes(),
            Self::EndsWith(text) => name.as_bytes().ends_with(text.as_bytes()),
            Self::Glob(glob) => glob.is_match(Path::new(name)),
        }
    }
}

/// The places behind a name; the bit behind the last component is the end.
fn step(form: &[Part], from: u64, name: &OsStr) -> u64 {
    let mut to = 0;
    for (place, part) in form.iter().enumerate() {
        if from >> place & 1 == 0 || !part.matches(name) {
            continue;
        }
        to |= match part {
            Part::AnyDepth if place + 1 == form.len() => 1 << place | 1 << form.len(),
            Part::AnyDepth => 1 << place,
            Part::Name(..) => 1 << (place + 1),
        };
    }
    to
}

/// With the places behind every `**`, which may stand for no directory; a last one may not.
fn closed(form: &[Part], mut places: u64) -> u64 {
    for (place, part) in form.iter().enumerate() {
        let may_be_nothing = matches!(part, Part::AnyDepth) && place + 1 < form.len();
        if places >> place & 1 == 1 && may_be_nothing {
            places |= 1 << (place + 1);
        }
    }
    places
}

/// Every form of a pattern with `{a,b}` in it; `None` if there are too many.
fn unfold(pattern: &str) -> Option<Vec<String>> {
    let mut open = vec![(String::new(), pattern.to_owned())];
    let mut done = Vec::new();
    while let Some((mut head, rest)) = open.pop() {
        match group(&rest) {
            None => done.push(head + &rest),
            Some((before, choices, behind)) => {
                head.push_str(before);
                match choices.as_slice() {
                    // One choice is none: the braces are meant.
                    [one] => {
                        head.push_str(&format!("{{{one}}}"));
                        open.push((head, behind.to_owned()));
                    }
                    many => open.extend(
                        many.iter()
                            .map(|choice| (head.clone(), format!("{choice}{behind}"))),
                    ),
                }
            }
        }
        if open.len() + done.len() > FORMS_MAX {
            return None;
        }
    }
    Some(done)
}

/// The text before the first `{…}`, its choices, and the text behind it.
fn group(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let open = text.find('{')?;
    let (mut depth, mut from, mut choices) = (0, open + 1, Vec::new());
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b',' if depth == 1 => {
                choices.push(text.get(from..at)?);
                from = at + 1;
            }
            b'}' if depth == 1 => {
                choices.push(text.get(from..at)?);
                return Some((text.get(..open)?, choices, text.get(at + 1..)?));
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The components of a form; `None` for one that means directories only.
fn parts(form: &str, known: &mut HashMap<String, Arc<Name>>) -> Result<Option<Vec<Part>>, String> {
    let texts = form.split('/').filter(|text| !matches!(*text, "" | "."));
    let mut parts: Vec<Part> = Vec::new();
    for text in texts {
        if text == "**" {
            if !matches!(parts.last(), Some(Part::AnyDepth)) {
                parts.push(Part::AnyDepth);
            }
            continue;
        }
        let name = match known.get(text) {
            Some(name) => Arc::clone(name),
            None => Arc::new(name(text)?),
        };
        known.insert(text.to_owned(), Arc::clone(&name));
        parts.push(Part::Name(name, text.starts_with('.')));
    }
    if parts.len() > PARTS_MAX {
        return Err(format!("it has more than {PARTS_MAX} components"));
    }
    let of_directories = form.ends_with('/') && !matches!(parts.last(), Some(Part::AnyDepth));
    Ok((!parts.is_empty() && !of_directories).then_some(parts))
}

fn name(text: &str) -> Result<Name, String> {
    let special = |text: &str| text.contains(['*', '?', '[', '\\']);
    if !special(text) {
        return Ok(Name::Literal(text.to_owned()));
    }
    if let Some(end) = text.strip_prefix('*').filter(|end| !special(end)) {
        return Ok(Name::EndsWith(end.to_owned()));
    }
    let mut glob = String::new();
    let mut escaped = false;
    for c in text.chars() {
        // What was not unfolded is no choice.
        if matches!(c, '{' | '}') && !escaped {
            glob.push('\\');
        }
        escaped = c == '\\' && !escaped;
        glob.push(c);
    }
    let built = GlobBuilder::new(&glob).backslash_escape(true).build();
    built
        .map(|glob| Name::Glob(glob.compile_matcher()))
        .map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
