//! What patterns mean, and which are refused.

use super::*;

/// Whether a walk that follows the pattern finds a path.
pub(super) fn finds(pattern: &Pattern, path: &str) -> bool {
    let mut places = pattern.root();
    let mut names: Vec<&str> = path.split('/').collect();
    let file = names.pop().unwrap();
    for name in names {
        match pattern.enter(&places, OsStr::new(name)) {
            Some(inside) => places = inside,
            None => return false,
        }
    }
    pattern.accepts(&places, OsStr::new(file))
}

#[test]
fn patterns_mean_what_agents_are_told() {
    for (pattern, path, wanted) in [
        ("*.py", "src/app/main.py", true),
        ("*.py", ".hidden/main.py", true),
        ("*.py", ".main.py", false),
        (".*.py", "a/.main.py", true),
        ("*", ".env", false),
        (".env", "a/.env", true),
        ("*.yml", ".github/workflows/ci.yml", true),
        ("**/*.yml", ".github/workflows/ci.yml", false),
        (".github/**/*.yml", ".github/workflows/ci.yml", true),
        ("src/**/*.py", "src/main.py", true),
        ("src/**/*.py", "src/a/b/main.py", true),
        ("src/**/*.py", "src/a/.b/main.py", false),
        ("src/**/*.py", "lib/src/main.py", false),
        ("/*.py", "top.py", true),
        ("/*.py", "src/top.py", false),
        ("./src/*.py", "src/a.py", true),
        ("a//b.py", "a/b.py", true),
        ("**", "a", true),
        ("a/**", "a/b/c", true),
        ("a/**", "a/.b/c", false),
        ("a.py/**", "a.py", false),
        ("a/**/b/**/c", "a/x/b/y/b/c", true),
        ("a/**/**/b", "a/b", true),
        ("src/", "src/a", false),
        ("src/**/", "src/a/b", true),
        ("*.{ts,tsx}", "a/b.tsx", true),
        ("*.{ts,tsx}", "a/b.js", false),
        ("{a,b/c}/*.x", "b/c/d.x", true),
        ("{a,{b,c}d}", "cd", true),
        ("{.a,b}*", ".ax", true),
        ("{a}.txt", "{a}.txt", true),
        ("{a}*.txt", "{a}b.txt", true),
        ("{a", "{a", true),
        ("{a*", "{ab", true),
        ("test[0-9].txt", "test1.txt", true),
        ("[!a]*.py", "a.py", false),
        ("[^a]*.py", "b.py", true),
        ("file?.txt", "file1.txt", true),
        ("file?.txt", "file.txt", false),
        ("\\*.py", "*.py", true),
        ("\\*.py", "a.py", false),
        ("a b$(c)*", "a b$(c)d", true),
    ] {
        let found = finds(&Pattern::new(pattern).unwrap(), path);
        assert_eq!(found, wanted, "{pattern} {path}");
    }
}

#[test]
fn senseless_and_endless_patterns_are_refused() {
    let broad = "{a,b}".repeat(10);
    let endless = "{a,b}".repeat(800);
    let deep = "a/".repeat(64) + "b";
    let long = "a".repeat(4097);
    for (pattern, code) in [
        ("../a", Code::InvalidPattern),
        ("a/..\\b", Code::InvalidPattern),
        ("", Code::InvalidPattern),
        ("[a?", Code::InvalidPattern),
        (broad.as_str(), Code::PatternTooBroad),
        (endless.as_str(), Code::PatternTooBroad),
        (deep.as_str(), Code::InvalidPattern),
        (long.as_str(), Code::InvalidPattern),
    ] {
        assert_eq!(Pattern::new(pattern).unwrap_err().code, code, "{pattern}");
    }
    assert!(Pattern::new(&"{a,b}".repeat(9)).is_ok());
}

#[test]
fn directories_without_a_chance_are_not_entered() {
    let pattern = Pattern::new("src/*/x/*.py").unwrap();
    let root = pattern.root();
    assert!(pattern.enter(&root, OsStr::new("lib")).is_none());
    let src = pattern.enter(&root, OsStr::new("src")).unwrap();
    assert!(pattern.enter(&src, OsStr::new(".git")).is_none());
    let below = pattern.enter(&src, OsStr::new("a")).unwrap();
    assert!(pattern.enter(&below, OsStr::new("y")).is_none());
}
