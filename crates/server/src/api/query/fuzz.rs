use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::collection::btree_map;
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

const WORDS: &[&str] = &[
    "metadata=",
    "state=",
    "page=",
    "pageSize=",
    "&",
    "=",
    "%",
    "%3D",
    "%26",
    "%2526",
    "%25",
    "1",
    "200",
    "-1",
    "+",
    "é",
    "%FF",
    "Running",
    "9223372036854775808",
];

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fuzz! {
    fn any_list_is_understood_or_refused(text in text_from(WORDS)) {
        match ListQuery::read(Some(&text)) {
            Ok(list) => {
                assert!(list.page >= 1 && (1..=200).contains(&list.page_size));
            }
            Err(refusal) => assert!(matches!(refusal.status(), 400 | 422)),
        }
    }

    /// Each value encoded, and then the whole, as the SDK does it.
    fn a_filter_finds_what_was_asked_for(
        labels in btree_map(any::<String>(), any::<String>(), 0..5),
        states in vec("[A-Za-z]{0,8}", 0..4),
    ) {
        let pair = |label: (&String, &String)| {
            format!("{}={}", encoded(label.0), encoded(label.1))
        };
        let metadata = labels.iter().map(pair).collect::<Vec<_>>().join("&");
        let mut text = format!("metadata={}", encoded(&metadata));
        for state in &states {
            text = format!("{text}&state={state}");
        }
        let filter = ListQuery::read(Some(&text)).unwrap().filter;
        assert_eq!(filter.metadata, labels, "{text}");
        assert_eq!(filter.states, states.iter().map(|it| it.to_lowercase()).collect::<Vec<_>>());
    }
}
