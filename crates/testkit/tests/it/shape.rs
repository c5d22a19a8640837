//! Pure. What a file may look like: its length, its name, its lines.

use crate::fault::Fault;

const FILE_LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 60;
const LINE_CHARS_MAX: usize = 100;

/// Every breach of shape in one file.
pub(crate) fn faults(path: &str, text: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    let is_code = path.ends_with(".rs") || path.ends_with(".py");
    if is_code {
        let lines = production_lines(text);
        let (max, instead) = if path.ends_with("src/main.rs") {
            (
                MAIN_LINES_MAX,
                "main is a table of contents; move the work into a module",
            )
        } else {
            (
                FILE_LINES_MAX,
                "split it by concept: foo.rs beside foo/, tests to foo/tests.rs",
            )
        };
        if lines > max {
            let what = format!("{lines} lines before the tests, {max} at most");
            found.push(Fault::new(path, max + 1, what, instead));
        }
    }
    if is_code || matches!(path, "Makefile" | ".ci/run") {
        for (at, line) in text.lines().enumerate() {
            let chars = line.chars().count();
            if chars > LINE_CHARS_MAX {
                let what = format!("{chars} characters in a line, {LINE_CHARS_MAX} at most");
                found.push(Fault::new(
                    path,
                    at + 1,
                    what,
                    "break it where the thought breaks",
                ));
            }
        }
    }
    found.extend(name_fault(path));
    found
}

/// Lines that ship: up to the unit tests. A file of tests alone counts in full.
fn production_lines(text: &str) -> usize {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .count()
}

fn name_fault(path: &str) -> Option<Fault> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "mod.rs" {
        let what = "a file named mod.rs".to_owned();
        return Some(Fault::new(
            path,
            1,
            what,
            "name it foo.rs beside the folder foo/",
        ));
    }
    let (_, in_tests) = path.strip_prefix("crates/")?.split_once('/')?;
    let file = in_tests.strip_prefix("tests/")?;
    (name.ends_with(".rs") && !file.starts_with("it/")).then(|| {
        let what = "a second test binary, and linking is what costs".to_owned();
        Fault::new(path, 1, what, "make it a module of tests/it/main.rs")
    })
}

/// The file that must name this module, and the name; `None` for roots of a crate.
pub(crate) fn parents(path: &str) -> Option<(Vec<String>, String)> {
    let inside = path.strip_prefix("crates/")?.split_once('/')?.1;
    let stem = path.strip_suffix(".rs")?;
    let (folder, name) = stem.rsplit_once('/')?;
    let is_root = matches!(name, "main" | "lib" | "build") || inside.starts_with("src/bin/");
    if is_root {
        return None;
    }
    let at_top = folder.ends_with("/src") || folder.ends_with("/tests/it");
    let candidates = if at_top {
        vec![format!("{folder}/lib.rs"), format!("{folder}/main.rs")]
    } else {
        vec![format!("{folder}.rs")]
    };
    Some((candidates, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: usize) {
        let found = faults(path, text);
        assert_eq!(found.len(), expected, "{path}: {found:?}");
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_above() {
        check("crates/x/src/a.rs", &"x\n".repeat(400), 0);
        check("crates/x/src/a.rs", &"x\n".repeat(401), 1);
        check("crates/x/src/main.rs", &"x\n".repeat(60), 0);
        check("crates/x/src/main.rs", &"x\n".repeat(61), 1);
        check("python/src/a.py", &"x\n".repeat(401), 1);
        check("crates/x/src/a.rs", &"é".repeat(100), 0);
        check("crates/x/src/a.rs", &"é".repeat(101), 1);
        check("docs/a.md", &"é".repeat(101), 0);
    }

    #[test]
    fn unit_tests_do_not_count() {
        check(
            "crates/x/src/a.rs",
            &format!("x\n#[cfg(test)]\n{}", "x\n".repeat(900)),
            0,
        );
    }

    #[test]
    fn names_and_places() {
        check("crates/x/src/a/mod.rs", "", 1);
        check("crates/x/tests/extra.rs", "", 1);
        check("crates/x/tests/it/extra.rs", "", 0);
    }

    #[test]
    fn a_module_has_one_parent() {
        let parent = |path| parents(path).map(|(files, name)| (files.join(" "), name));
        let of = |files: &str, name: &str| Some((files.to_owned(), name.to_owned()));
        let top = "crates/x/src/lib.rs crates/x/src/main.rs";
        assert_eq!(parent("crates/x/src/a.rs"), of(top, "a"));
        assert_eq!(parent("crates/x/src/a/b.rs"), of("crates/x/src/a.rs", "b"));
        assert_eq!(parent("crates/x/src/main.rs"), None);
        assert_eq!(parent("crates/x/build.rs"), None);
    }
}
