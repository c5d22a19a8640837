//! Pure. What a name is to file systems that take several names for one.

/// One step of a path, in the forms under which it may be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    whole: String,
    /// Without what stands for a stream of a file, where colons do.
    stem: String,
}

impl Step {
    /// Whether it fits a pattern: a name in lower case, or the beginning or end of one with a star
    /// for the rest.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        let fits = |name: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (_, Some(beginning)) => name.starts_with(beginning),
            _ => name == pattern,
        };
        fits(&self.whole) || fits(&self.stem)
    }
}

/// The steps of a part of a path: more than one where a backslash parts them.
pub(super) fn steps(part: &[u8]) -> impl Iterator<Item = Step> {
    let text = String::from_utf8_lossy(part).into_owned();
    let pieces: Vec<Step> = text.split('\\').map(step).collect();
    pieces.into_iter()
}

fn step(piece: &str) -> Step {
    let stem = piece.split(':').next().unwrap_or(piece);
    Step {
        whole: folded(piece),
        stem: folded(stem),
    }
}

/// Without case, without characters that some file systems skip, and without dots and blanks at the
/// end, which others drop.
fn folded(name: &str) -> String {
    let seen = name.chars().filter(|char| !is_skipped(*char));
    // Upwards first: two small letters may have one capital.
    let folded: String = seen
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    let folded = folded.trim_end_matches([' ', '.']);
    // The short name that is made for `.git` where names have eight letters.
    match folded.strip_prefix("git~") {
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => ".git".to_owned(),
        _ => folded.to_owned(),
    }
}

/// Whether HFS+, or a file system of Linux that folds case, takes names with and without this
/// character for the same: Unicode calls them ignorable (`Default_Ignorable_Code_Point`).
fn is_skipped(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_all_its_forms() {
        for (part, pattern, expected) in [
            (&b".git"[..], ".git", true),
            (b".GiT", ".git", true),
            (b".git. . ", ".git", true),
            (b".git::$INDEX_ALLOCATION", ".git", true),
            (b".git :x", ".git", true),
            (b"GIT~1", ".git", true),
            (b"git~x", ".git", false),
            (".g\u{200c}it\u{feff}".as_bytes(), ".git", true),
            (".g\u{ad}i\u{200b}t\u{2060}".as_bytes(), ".git", true),
            (".ba\u{17f}hrc".as_bytes(), ".bashrc", true),
            (".\u{212a}shrc".as_bytes(), ".kshrc", true),
            (b"a:b.pth", "*.pth", true),
            (b"a.pth:b", "*.pth", true),
            (b"x\\.git\\hooks", ".git", true),
            (b"sitecustomize.so", "sitecustomize.*", true),
            (b".github", ".git", false),
            (b"a.git", ".git", false),
            (b".git\xff", ".git", false),
            (b"...", ".git", false),
        ] {
            let found = steps(part).any(|step| step.fits(pattern));
            assert_eq!(found, expected, "{} {pattern}", part.escape_ascii());
        }
    }
}
