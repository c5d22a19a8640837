//! Pure. Well-known image names led to images of the local store.

use globset::{Glob, GlobMatcher};

use super::error::ImageError;

/// Rules from glob patterns to image names; the first pattern that matches decides.
#[derive(Debug, Clone, Default)]
pub struct Aliases {
    rules: Vec<(GlobMatcher, Vec<String>)>,
}

/// What the settings hold unless the operator writes others: a pattern, then the images to try in
/// turn.
pub const ALIASES_DEFAULT: [(&str, &[&str]); 6] = [
    (
        "opensandbox/code-interpreter:*",
        &["code-interpreter", "data-science"],
    ),
    (
        "*/opensandbox/code-interpreter:*",
        &["code-interpreter", "data-science"],
    ),
    ("python:*", &["data-science", "host"]),
    ("*/library/python:*", &["data-science", "host"]),
    ("{debian,ubuntu}:*", &["debian", "host"]),
    ("*/library/{debian,ubuntu}:*", &["debian", "host"]),
];

impl Aliases {
    /// Compiles rules. In a pattern `*` stands for anything, slashes and colons included; a name
    /// without a tag is matched as if it ended in `:latest`.
    pub fn new<P, T>(rules: impl IntoIterator<Item = (P, T)>) -> Result<Self, ImageError>
    where
        P: AsRef<str>,
        T: IntoIterator<Item: Into<String>>,
    {
        let mut compiled = Vec::new();
        for (pattern, targets) in rules {
            let pattern = pattern.as_ref();
            let glob = Glob::new(pattern).map_err(|e| ImageError::Unknown {
                message: format!("the image alias '{pattern}' is no glob pattern: {e}"),
            })?;
            compiled.push((
                glob.compile_matcher(),
                targets.into_iter().map(Into::into).collect(),
            ));
        }
        Ok(Self { rules: compiled })
    }

    /// The images to try in turn for a name; empty when no rule matches.
    #[must_use]
    pub fn targets(&self, name: &str) -> &[String] {
        let last = name.rsplit('/').next().unwrap_or_default();
        let tagged = if last.contains([':', '@']) || last.is_empty() {
            name.to_owned()
        } else {
            format!("{name}:latest")
        };
        self.rules
            .iter()
            .find(|(glob, _)| glob.is_match(&tagged))
            .map_or(&[], |(_, to)| to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Aliases {
        Aliases::new(ALIASES_DEFAULT.map(|(p, t)| (p, t.iter().copied()))).unwrap()
    }

    #[test]
    fn well_known_names_lead_to_local_images() {
        for (name, first) in [
            ("opensandbox/code-interpreter:v1.1.0", "code-interpreter"),
            ("opensandbox/code-interpreter", "code-interpreter"),
            (
                "registry.example:5000/opensandbox/code-interpreter:latest",
                "code-interpreter",
            ),
            ("python:3.12-slim", "data-science"),
            ("ubuntu:24.04", "debian"),
        ] {
            assert_eq!(
                defaults().targets(name).first().map(String::as_str),
                Some(first),
                "{name}"
            );
        }
    }

    #[test]
    fn names_that_only_look_alike_match_nothing() {
        for name in [
            "mypython:3",
            "opensandbox/code-interpreter2",
            "python-evil",
            "",
        ] {
            assert!(defaults().targets(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_first_rule_decides() {
        let aliases = Aliases::new([("a*", ["one"]), ("ab:*", ["two"])]).unwrap();
        assert_eq!(aliases.targets("ab"), ["one"]);
    }

    #[test]
    fn a_broken_pattern_is_named() {
        let error = Aliases::new([("a[", ["x"])]).unwrap_err().to_string();
        assert!(error.contains("'a['"), "{error}");
    }
}
