//! The text files of the repository, read once.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A text file: its path from the root with `/`, and what it says.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether the name ends in this extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// Folders that are made, not written.
const MADE: [&str; 5] = ["target", "node_modules", "__pycache__", "out", "dist"];
const EXTENSIONS: [&str; 7] = ["rs", "py", "toml", "md", "sh", "yml", "json"];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every text file that somebody wrote.
pub(crate) fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        let root = root();
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() && !MADE.contains(&name.as_str()) && !is_hidden(&name) {
                    folders.push(entry.path());
                } else if kind.is_file() && is_written(&name) {
                    let path = entry.path();
                    let short = path
                        .strip_prefix(&root)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned();
                    let text = std::fs::read_to_string(&path)
                        .unwrap_or_else(|error| panic!("{short} is no UTF-8 text: {error}"));
                    found.push(Source { path: short, text });
                }
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found
    });
    &SOURCES
}

/// Caches of tools hide behind a dot; the folders that CI and cargo read do too, and are written.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && ![".ci", ".cargo", ".config"].contains(&name)
}

fn is_written(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|found| found.to_str());
    matches!(name, "Makefile" | "run") || extension.is_some_and(|it| EXTENSIONS.contains(&it))
}

#[test]
fn the_walk_finds_what_the_rules_are_about() {
    let paths: Vec<&str> = sources()
        .iter()
        .map(|source| source.path.as_str())
        .collect();
    for expected in [
        "Cargo.toml",
        "Makefile",
        ".ci/run",
        "crates/testkit/tests/it/tree.rs",
    ] {
        assert!(
            paths.contains(&expected),
            "{expected} is not among {} files",
            paths.len()
        );
    }
    assert!(!paths.iter().any(|path| path.starts_with("target/")));
}
