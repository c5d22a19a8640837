use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

const WORDS: &[&str] = &[
    "path=",
    "&",
    "=",
    "%",
    "%4",
    "%41",
    "%2541",
    "+",
    "cursor=",
    "18446744073709551616",
    "1",
    "é",
    "%FF",
    "%00",
    "verbose=true",
];

fuzz! {
    fn a_query_gives_back_what_was_encoded(
        pairs in vec(("[a-z]{1,4}", vec(any::<u8>(), 0..12)), 0..6),
    ) {
        let piece = |(name, value): &(String, Vec<u8>)| {
            format!("{name}={}", percent_encode(value, NON_ALPHANUMERIC))
        };
        let text = pairs.iter().map(piece).collect::<Vec<_>>().join("&");
        let query = Query::new(Some(&text)).unwrap();
        for (name, _) in &pairs {
            let wanted = pairs.iter().filter(|pair| pair.0 == *name).map(|pair| pair.1.as_slice());
            assert!(query.all(name).eq(wanted), "{name} of {text}");
        }
    }

    fn any_query_is_read_or_refused(text in text_from(WORDS)) {
        match Query::new(Some(&text)) {
            Ok(query) => {
                let sizes = query.0.iter().map(|(name, value)| name.len() + value.len());
                let held: usize = sizes.sum();
                assert!(held <= text.len());
                if let Ok(Some(number)) = query.number("cursor") {
                    let text = std::str::from_utf8(query.get("cursor").unwrap()).unwrap();
                    assert_eq!(text.trim_start_matches('0').parse().unwrap_or(0), number);
                }
            }
            Err(_) => assert!(text.contains('%')),
        }
    }
}
