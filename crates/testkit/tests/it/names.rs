//! Names that a comment promises: a boundary names the test that guards it.

use std::collections::BTreeSet;

use crate::fault::Fault;

const MARK: &str = concat!("BOUND", "ARY:");

/// The names of all test functions of a file, Rust or Python.
pub(crate) fn tests_of(path: &str, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if path.ends_with(".py") {
            let name = line
                .strip_prefix("async ")
                .unwrap_or(line)
                .strip_prefix("def ");
            found.extend(name.filter(|it| it.starts_with("test_")).map(identifier));
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if marked && !line.starts_with("#[") {
            let name = line.split_once("fn ").map(|(_, rest)| identifier(rest));
            marked = name.is_none();
            found.extend(name);
        }
    }
    found
}

/// Every boundary of a file whose test is not among these.
pub(crate) fn faults(path: &str, text: &str, tests: &BTreeSet<String>) -> Vec<Fault> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let is_comment = line.starts_with("//") || line.starts_with('#');
        let Some((_, first)) = line.split_once(MARK).filter(|_| is_comment) else {
            continue;
        };
        let rest = lines
            .iter()
            .skip(at + 1)
            .take_while(|next| next.starts_with("//"));
        let comment: String = std::iter::once(first)
            .chain(rest.map(|next| next.trim_start_matches('/')))
            .collect();
        let named = comment
            .split_once("Test:")
            .map(|(_, name)| last_segment(name.trim()));
        let what = match named {
            None => "a boundary without a test".to_owned(),
            Some(name) if !tests.contains(&name) => format!("no test is named `{name}`"),
            Some(_) => continue,
        };
        let instead = "write the test that sends the worst bytes here, and name it: `Test: name`";
        found.push(Fault::new(path, at + 1, what, instead));
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// `module::name` and `name` both name `name`.
fn last_segment(text: &str) -> String {
    let is_name = |c: &char| c.is_alphanumeric() || *c == '_' || *c == ':';
    let whole: String = text
        .trim_start_matches('`')
        .chars()
        .take_while(is_name)
        .collect();
    whole.rsplit("::").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_in_both_languages() {
        let rust = "#[test]\nfn a() {}\n#[tokio::test(flavor = \"x\")]\n#[cfg(unix)]\n\
                    async fn b() {}\nfn c() {}\n";
        assert_eq!(
            tests_of("x.rs", rust),
            BTreeSet::from(["a".to_owned(), "b".to_owned()])
        );
        let python = "def test_a():\nasync def test_b(self):\ndef helper():\n";
        let expected = BTreeSet::from(["test_a".to_owned(), "test_b".to_owned()]);
        assert_eq!(tests_of("x.py", python), expected);
    }

    #[test]
    fn a_boundary_names_a_test_that_exists() {
        let tests = BTreeSet::from(["guarded".to_owned()]);
        for (comment, faulty) in [
            ("sandbox → host. Test: guarded", false),
            ("sandbox → host, capped.\n// Test: module::guarded", false),
            ("sandbox → host. Test: missing", true),
            ("sandbox → host.", true),
        ] {
            let text = format!("    // {MARK} {comment}\n    read();\n");
            assert_eq!(
                !faults("x.rs", &text, &tests).is_empty(),
                faulty,
                "{comment}"
            );
        }
    }
}
