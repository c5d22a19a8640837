//! Patterns against a model that tries every way.

use proptest::prelude::prop;

use super::tests::finds;
use super::*;

/// Tries every way in which components can be matched.
fn model(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], rest) => rest.is_empty(),
        (["**"], rest) => !rest.is_empty() && rest.iter().all(|name| !name.starts_with('.')),
        (["**", behind @ ..], rest) => {
            model(behind, rest)
                || matches!(rest, [first, more @ ..]
                    if !first.starts_with('.') && model(pattern, more))
        }
        ([_, ..], []) => false,
        ([first, behind @ ..], [name, more @ ..]) => {
            let hidden = name.starts_with('.') && !first.starts_with('.');
            let same = match first.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => first == name,
            };
            !hidden && same && model(behind, more)
        }
    }
}

barchan_testkit::fuzz! {
    fn walks_agree_with_the_model(
        pattern in prop::collection::vec(prop::sample::select(
            vec!["**", "*", "a", "b", "a*", ".a", ".*"]), 2..6),
        path in prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", ".a"]), 1..6),
    ) {
        let found = finds(&Pattern::new(&pattern.join("/")).unwrap(), &path.join("/"));
        let mut once = pattern.clone();
        once.dedup_by(|one, other| one == other && *one == "**");
        assert_eq!(found, model(&once, &path), "{pattern:?} {path:?}");
    }

    fn no_pattern_panics(pattern in r"[ab./*?{},\[\]!\\]{0,30}", path in "[ab./]{1,20}") {
        if let Ok(pattern) = Pattern::new(&pattern) {
            finds(&pattern, &path);
        }
    }
}
