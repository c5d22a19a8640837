use barchan_testkit::fuzz;
use barchan_testkit::inputs::bytes_from;
use proptest::collection::vec;
use proptest::sample::select;

use super::*;

const WORDS: &[&[u8]] = &[
    b"*", b"**", b"/", b"**/", b"?", b"[", b"]", b"[!a-c]", b"[a", b"{", b"}", b",", b"\\", b"a",
    b"b", b".", b"{a,b}", b"\xff", b"-",
];

/// What the tokens of a pattern without sets match, tried in every way there is.
fn naive(pattern: &[u8], name: &[u8], at_start: bool) -> bool {
    let one = |name: &[u8]| name.first().is_some_and(|byte| *byte != b'/');
    match pattern {
        [] => name.is_empty(),
        b"**" if at_start => true,
        [b'*', b'*', b'/', rest @ ..] if at_start => {
            naive(rest, name, true)
                || (0..name.len()).any(|at| name[at] == b'/' && naive(rest, &name[at + 1..], true))
        }
        [b'*', rest @ ..] => {
            naive(rest, name, false) || (one(name) && naive(pattern, &name[1..], false))
        }
        [b'?', rest @ ..] => one(name) && naive(rest, &name[1..], false),
        [byte, rest @ ..] => name.first() == Some(byte) && naive(rest, &name[1..], *byte == b'/'),
    }
}

fuzz! {
    fn globs_match_what_trying_everything_matches(
        pattern in vec(select(b"*?/ab".as_slice()), 0..9),
        name in vec(select(b"/ab".as_slice()), 0..9),
    ) {
        let name: Vec<u8> = name;
        let base = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let compared = if pattern.contains(&b'/') { &name } else { base };
        let wanted = naive(&pattern, compared, true);
        assert_eq!(Glob::new(&pattern).unwrap().matches(&name), wanted);
    }

    fn any_pattern_is_read_or_refused(pattern in bytes_from(WORDS), name in bytes_from(WORDS)) {
        if let Ok(glob) = Glob::new(&pattern) {
            assert!(glob.alternatives.len() <= ALTERNATIVES_MAX);
            let _ = glob.matches(&name);
        }
    }

    fn patterns_of_any_shape_are_read_in_time(
        word in select(WORDS),
        count in 1_usize..500,
        tail in bytes_from(WORDS),
        name in bytes_from(WORDS),
    ) {
        let nested = [b"{".repeat(count), tail.clone(), b"}".repeat(count)].concat();
        for pattern in [nested, [word.repeat(count), tail].concat()] {
            if let Ok(glob) = Glob::new(&pattern) {
                assert!(glob.alternatives.len() <= ALTERNATIVES_MAX);
                let _ = glob.matches(&name);
            }
        }
    }
}
