//! What a reader must be able to look up: every error code, every environment variable.

use std::collections::BTreeSet;

use crate::fault::{self, Fault};
use crate::tree::{Source, sources};

fn page(path: &str) -> &'static Source {
    let found = sources().iter().find(|source| source.path == path);
    found.unwrap_or_else(|| panic!("{path} is missing"))
}

/// Values of `pub const NAME: &str = "VALUE";`.
fn constants(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let value = line
            .trim()
            .strip_prefix("pub const ")?
            .split_once("&str = \"")?
            .1;
        Some((at + 1, value.strip_suffix("\";")?))
    })
}

/// Words of a file that begin with this and go on in capitals.
fn words_from<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_part(c))
        .filter(|word| {
            word.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty())
        })
        .filter(|word| !word.chars().any(|c| c.is_ascii_lowercase()) && !word.ends_with('_'))
        .collect()
}

#[test]
fn every_error_code_has_its_line() {
    let page = page("docs/reference/errors.md");
    let codes = &self::page("crates/wire/src/lifecycle/code.rs");
    let mut found = Vec::new();
    for (line, code) in constants(&codes.text) {
        if !page.text.contains(&format!("| `{code}` |")) {
            let what = format!("the code `{code}` has no line in {}", page.path);
            let instead = "say there what it means and what to do";
            found.push(Fault::new(&codes.path, line, what, instead));
        }
    }
    assert!(
        constants(&codes.text).count() > 20,
        "the search for codes is broken"
    );
    fault::none(&found);
}

/// Variants of the enum of this name, in lower case with underscores.
fn variants(text: &str, name: &str) -> Vec<(usize, String)> {
    let begin = format!("pub enum {name} {{");
    let lines = text.lines().enumerate();
    let inside = lines.skip_while(|(_, line)| *line != begin).skip(1);
    let inside = inside.take_while(|(_, line)| *line != "}");
    let named = inside.filter_map(|(at, line)| Some((at + 1, line.trim().strip_suffix(',')?)));
    let snake = |name: &str| {
        let mut snake = String::new();
        for c in name.chars() {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        snake
    };
    named.map(|(at, name)| (at, snake(name))).collect()
}

#[test]
fn every_refusal_of_a_file_tool_has_its_line() {
    let page = page("docs/reference/fs.md");
    let codes = &self::page("crates/wire/src/execd/fs/refusal.rs");
    let all = variants(&codes.text, "Code");
    assert!(all.len() > 15, "the search for codes is broken");
    let known = |code: &str| code == "unknown" || page.text.contains(&format!("| `{code}` |"));
    let missing = all.iter().filter(|(_, code)| !known(code));
    let fault = |(line, code): &(usize, String)| {
        let what = format!("the code `{code}` has no line in {}", page.path);
        let instead = "say there what it means";
        Fault::new(&codes.path, *line, what, instead)
    };
    fault::none(&missing.map(fault).collect::<Vec<_>>());
}

#[test]
fn every_environment_variable_has_its_line() {
    let others = page("docs/reference/environment.md");
    let settings = page("docs/reference/settings.md");
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let readers = ["crates/", "python/src/", "examples/", "bench/"];
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let read = |path: &str| readers.iter().any(|it| path.starts_with(it)) && !is_test(path);
    for source in sources().iter().filter(|it| read(&it.path)) {
        for word in words_from(&source.text, "BARCHAN_") {
            seen.insert(word);
            let is_setting = settings.text.contains(&format!("`{word}`"));
            if !is_setting && !others.text.contains(&format!("| `{word}` |")) {
                let what = format!("the variable {word} has no line in {}", others.path);
                let instead = "say there who reads it and what it means";
                found.push(Fault::new(&source.path, 1, what, instead));
            }
        }
    }
    assert!(
        seen.contains("BARCHAN_SERVER"),
        "the search for variables is broken"
    );
    fault::none(&found);
}

/// Words in backticks that name a file or folder of the sources.
fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        let words = line.split('`').skip(1).step_by(2);
        let is_place = |word: &&str| {
            (word.contains("/src") || word.starts_with("crates/") || word.starts_with("docs/"))
                && !word.contains(['<', '*', ' ', '{', '…'])
        };
        words.filter(is_place).map(move |word| (at + 1, word))
    })
}

#[test]
fn every_place_that_the_map_names_exists() {
    let root = crate::tree::root();
    let mut found = Vec::new();
    for path in [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "README.md",
    ] {
        for (line, place) in places(&page(path).text) {
            if !root.join(place).exists() && !root.join("crates").join(place).exists() {
                let what = format!("`{place}` does not exist");
                found.push(Fault::new(path, line, what, "name where it is now"));
            }
        }
    }
    assert!(
        places(&page("ARCHITECTURE.md").text).count() > 10,
        "the search is broken"
    );
    fault::none(&found);
}
