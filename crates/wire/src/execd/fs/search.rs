//! Pure. Searches of the file tools: for text in files, and for names.

use serde::{Deserialize, Serialize};

/// Most matches of one search.
pub const MATCHES_MAX: u64 = 10_000;
/// Longest search that may be asked for, in milliseconds.
pub const SEARCH_MS_MAX: u64 = 30_000;

/// What a search for text answers with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepMode {
    /// Every line that matches.
    #[default]
    Matches,
    /// Files with such a line.
    Files,
    /// Files, and how many such lines each has.
    Counts,
}

/// Body of `POST /x/fs/grep`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// What to look for in each line; several lines are alternatives.
    pub pattern: String,
    /// A directory or a file; else `workdir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// See [`Target::workdir`](super::Target::workdir).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Which files: without `/` by base name, with `/` by the path below `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Whether the pattern is a regular expression rather than plain text.
    #[serde(default)]
    pub regex: bool,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// What to answer with.
    #[serde(default)]
    pub mode: GrepMode,
    /// Most matches, or files, in all; up to [`MATCHES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// Names of directories that are not entered; else `.git`. The root is always entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_dirs: Option<Vec<String>>,
    /// After this long the search ends with what it has, up to [`SEARCH_MS_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// Absolute.
    pub path: String,
    /// From 1.
    pub line: u64,
    /// The line without its end; of a very long one the part around the match.
    pub text: String,
    /// Whether `text` is only a part.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(it: &bool) -> bool {
    !it
}

/// How many lines of a file match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Absolute.
    pub path: String,
    /// Lines.
    pub count: u64,
}

/// Why an answer is not all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// There are more matches than were asked for.
    Count,
    /// The answer is as large as it may be.
    Size,
    /// The time was over.
    Time,
    /// Something could not be read. Asking for less does not help.
    Unreadable,
}

/// A file that could not be searched, or a directory that could not be entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Absolute.
    pub path: String,
    /// Why, in words.
    pub reason: String,
}

/// Answer of `grep`: what the mode asks for, by path in the order of a walk by names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Match>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
    /// Why this is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// The first of those that could not be searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// Body of `POST /x/fs/glob`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Glob {
    /// Without `/` it is compared with base names, with `/` with paths below `path`. `*`, `?`,
    /// `[ab]`, `[!ab]`, `{a,b}`, and `**` for any number of directories. A name that begins with a
    /// dot is matched only by a component that does.
    pub pattern: String,
    /// A directory; else `workdir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// See [`Target::workdir`](super::Target::workdir).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Most paths; up to [`MATCHES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// After this long the walk ends with what it has, up to [`SEARCH_MS_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
}

/// Answer of `glob`: regular files, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// Absolute.
    pub paths: Vec<String>,
    /// Why these are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// The first of those that could not be entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_needs_its_pattern_and_nothing_else() {
        let grep: Grep = serde_json::from_str(r#"{"pattern":"x"}"#).unwrap();
        assert_eq!((grep.mode, grep.regex), (GrepMode::Matches, false));
        for text in [
            "{}",
            r#"{"pattern":"x","mode":"all"}"#,
            r#"{"pattern":"x","maxCount":1}"#,
        ] {
            assert!(serde_json::from_str::<Grep>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Glob>(r#"{"path":"/"}"#).is_err());
    }

    #[test]
    fn whole_lines_say_no_more_than_they_must() {
        let found = Found {
            matches: vec![Match {
                path: "/a".to_owned(),
                line: 1,
                text: "x".to_owned(),
                cut: false,
            }],
            truncated: Some(Truncation::Count),
            ..Found::default()
        };
        let text = serde_json::to_string(&found).unwrap();
        let wanted = r#"{"matches":[{"path":"/a","line":1,"text":"x"}],"truncated":"count"}"#;
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<Found>(&text).unwrap(), found);
    }
}
