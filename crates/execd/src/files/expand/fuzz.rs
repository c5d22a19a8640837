use barchan_testkit::fuzz;
use barchan_testkit::inputs::bytes_from;
use proptest::collection::vec;
use proptest::prelude::any;
use std::os::unix::ffi::OsStrExt;

use super::*;

const WORDS: &[&[u8]] = &[
    b"~",
    b"/",
    b"$",
    b"$D",
    b"${D}",
    b"${",
    b"}",
    b"$HOME",
    b"$LONG",
    b"$NONE",
    b"..",
    b"x",
    b"\0",
    b"\xff",
    b"$(touch pwn)",
    b"`id`",
    b"$$",
    b"${D",
];

fn lookup(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/root".to_owned()),
        "D" => Some("/da ta$D~".to_owned()),
        "LONG" => Some("l".repeat(3000)),
        _ => None,
    }
}

fuzz! {
    fn paths_are_short_and_without_nul(text in bytes_from(WORDS)) {
        if let Ok(path) = expand(&text, &lookup) {
            let bytes = path.as_os_str().as_bytes();
            assert!(!bytes.is_empty() && bytes.len() <= PATH_BYTES_MAX && !bytes.contains(&0));
            assert!(text.contains(&b'$') || text.starts_with(b"~") || bytes == text);
        }
    }

    fn values_are_not_expanded_again(before in "[a-z/]{0,8}", after in "[/.-]{0,8}") {
        for reference in ["$D", "${D}"] {
            let text = format!("{before}{reference}{after}");
            let wanted = format!("{before}/da ta$D~{after}");
            assert_eq!(expand(text.as_bytes(), &lookup).unwrap(), PathBuf::from(wanted));
        }
    }

    fn a_long_value_is_not_repeated_without_end(count in 1_usize..200_000) {
        let value = |_: &str| Some("v".repeat(100_000));
        assert!(expand(&b"$A".repeat(count), &value).is_err());
    }

    fn escaped_paths_say_what_they_are(path in vec(any::<u8>(), 0..40)) {
        let shown = escape(&path);
        match std::str::from_utf8(&path) {
            Ok(text) => assert_eq!(shown, text),
            Err(_) => assert!(shown.contains("\\x")),
        }
    }
}
