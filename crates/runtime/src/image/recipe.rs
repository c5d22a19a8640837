//! Pure. Recipes: what an operator writes down to have an image built.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::ImageError;
use super::manifest::check_name;

/// A recipe as its TOML file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The name of the image.
    pub name: String,
    /// What it is built on: `host`, another image of the store, or [`BOOTSTRAP`].
    pub base: String,
    /// Debian packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<String>,
    /// Python packages, as lines of a requirements file. They go into an environment of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pip: Vec<String>,
    /// That `pip` (or `requirements`) names every package that is wanted, so that pip looks for no
    /// further ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pip_complete: bool,
    /// A requirements file beside the recipe, read besides `pip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirements: Option<String>,
    /// Node packages, installed globally.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub npm: Vec<String>,
    /// Files to put into the image, before `run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSpec>,
    /// Shell lines, run as root in this order after all else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Environment of whatever runs in the image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Folders put in front of PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// What runs when a request names no entrypoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
}

/// One file of a recipe: its content is in the recipe or beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Absolute path in the image.
    pub path: String,
    /// The content itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A file beside the recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Permissions, as `0o755`.
    #[serde(default = "mode_default")]
    pub mode: u32,
}

/// The base of a Debian system of its own, unpacked from the packages that the host's apt knows.
pub const BOOTSTRAP: &str = "bootstrap";

/// Most lines of each list.
const LINES_MAX: usize = 1_000;
/// Longest line.
const LINE_BYTES_MAX: usize = 16 * 1024;

impl Recipe {
    /// Reads a recipe; `origin` is its name or path, for messages.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ImageError> {
        let refused = |reason: String| ImageError::Recipe {
            recipe: origin.to_owned(),
            reason,
        };
        let recipe: Self = toml::from_str(text).map_err(|e| refused(e.to_string()))?;
        recipe.check().map_err(refused)?;
        Ok(recipe)
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.name).map_err(|e| format!("name: {e}"))?;
        if self.name == super::HOST || self.name == BOOTSTRAP {
            return Err(format!(
                "name: '{}' is taken by the program itself",
                self.name
            ));
        }
        check_name(&self.base).map_err(|e| format!("base: {e}"))?;
        if self.base == super::HOST && !self.apt.is_empty() {
            return Err(
                "apt: the host's /usr is read-only in a sandbox; install the packages on \
                        the host, or take `debian` as base"
                    .to_owned(),
            );
        }
        lines("apt", &self.apt, |word| {
            first_is(word, |c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })?;
        lines("pip", &self.pip, |word| !word.starts_with('-'))?;
        lines("npm", &self.npm, |word| {
            first_is(word, |c| c.is_ascii_lowercase() || c == '@')
        })?;
        lines("path", &self.path, |word| {
            word.starts_with('/') && !word.contains(':')
        })?;
        lines("entrypoint", &self.entrypoint, |_| true)?;
        texts("run", &self.run)?;
        for (name, value) in &self.env {
            check_variable(name, value)?;
        }
        self.files.iter().try_for_each(FileSpec::check)
    }
}

impl FileSpec {
    fn check(&self) -> Result<(), String> {
        let refused = |reason: &str| Err(format!("files: {:?}: {reason}", self.path));
        let mut parts = self.path.split('/').skip(1);
        if !self.path.starts_with('/') || self.path.ends_with('/') {
            return refused("path must be absolute and name a file");
        }
        if parts.any(|part| matches!(part, "" | "." | "..")) || self.path.contains('\0') {
            return refused("path must hold no empty part, '.' or '..'");
        }
        if self.text.is_some() == self.source.is_some() {
            return refused("give either text or source");
        }
        if self.mode > 0o1777 {
            return refused("mode must be permissions as 0o644, without set-id bits");
        }
        Ok(())
    }
}

fn first_is(word: &str, good: impl Fn(char) -> bool) -> bool {
    word.chars().next().is_some_and(good)
}

fn lines(key: &str, list: &[String], good: impl Fn(&str) -> bool) -> Result<(), String> {
    texts(key, list)?;
    match list
        .iter()
        .find(|line| line.contains(['\n', '\r']) || line.trim() != **line || !good(line))
    {
        Some(bad) => Err(format!("{key}: {bad:?} cannot stand here")),
        None => Ok(()),
    }
}

fn texts(key: &str, list: &[String]) -> Result<(), String> {
    if list.len() > LINES_MAX {
        return Err(format!("{key}: more than {LINES_MAX} entries"));
    }
    match list
        .iter()
        .find(|text| text.is_empty() || text.len() > LINE_BYTES_MAX || text.contains('\0'))
    {
        Some(_) => Err(format!(
            "{key}: an entry is empty, longer than {LINE_BYTES_MAX} bytes or holds NUL"
        )),
        None => Ok(()),
    }
}

fn check_variable(name: &str, value: &str) -> Result<(), String> {
    let word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("env: {name:?} is no name of a variable"));
    }
    if name == "PATH" {
        return Err("env: put folders in front of PATH with `path = [...]`".to_owned());
    }
    if value.contains('\0') || value.len() > LINE_BYTES_MAX {
        return Err(format!("env: the value of {name} holds NUL or is too long"));
    }
    Ok(())
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn mode_default() -> u32 {
    0o644
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Recipe::parse(&format!("name = \"x\"\nbase = \"host\"\n{text}"), "x.toml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_whole_recipe_is_read() {
        let recipe = Recipe::parse(
            r#"
            name = "x"
            base = "debian"
            apt = ["curl"]
            pip = ["numpy==2.4.6"]
            npm = ["@types/node@22"]
            run = ["echo hi > /hi"]
            path = ["/opt/x/bin"]
            entrypoint = ["/bin/sh"]
            env = { MPLBACKEND = "Agg" }
            [[files]]
            path = "/opt/x/run.sh"
            text = "true"
            mode = 0o755
            "#,
            "x.toml",
        );
        let recipe = recipe.unwrap();
        assert_eq!(recipe.files.first().map(|file| file.mode), Some(0o755));
        assert_eq!(recipe.npm, ["@types/node@22"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("pipp = []", "pipp"),
            ("apt = ['curl']", "read-only"),
            ("pip = ['--index-url=x']", "--index-url=x"),
            ("pip = [\"a\\nb\"]", "pip"),
            ("npm = ['-g']", "npm"),
            ("path = ['bin']", "bin"),
            ("env = { PATH = '/x' }", "path ="),
            ("env = { '1A' = 'x' }", "1A"),
            ("run = ['']", "run"),
            ("files = [{ path = 'rel', text = '' }]", "absolute"),
            ("files = [{ path = '/a/../b', text = '' }]", ".."),
            ("files = [{ path = '/a' }]", "either"),
            (
                "files = [{ path = '/a', text = '', source = 'b' }]",
                "either",
            ),
            (
                "files = [{ path = '/a', text = '', mode = 0o4755 }]",
                "set-id",
            ),
            ("pip = 3", "pip"),
        ] {
            let said = refusal(text);
            assert!(
                said.contains(word) && said.contains("x.toml"),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn names_of_the_program_itself_are_taken() {
        for name in ["host", "bootstrap", "../up"] {
            assert!(Recipe::parse(&format!("name = \"{name}\"\nbase = \"host\""), "x").is_err());
        }
    }
}
