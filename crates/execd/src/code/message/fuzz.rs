use barchan_testkit::fuzz;
use barchan_testkit::inputs::{json, text_from};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;
use serde::de::IgnoredAny;

use super::tests::{from_kernel, signer};
use super::*;

const KINDS: &[&str] = &[
    "status",
    "stream",
    "execute_result",
    "display_data",
    "error",
    "execute_reply",
    "comm_msg",
];
const NAMES: &[&str] = &[
    "execution_state",
    "idle",
    "name",
    "stderr",
    "text",
    "data",
    "text/plain",
    "execution_count",
    "status",
    "ename",
    "evalue",
    "traceback",
];
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"text\":",
    "\"\\ud800\"",
    "\"x\"",
    ",",
    "1e999",
    "null",
];

fn told(kind: &str, content: &str) -> Told {
    let frames = from_kernel("key", kind, content);
    read(&signer(), &frames).unwrap().told()
}

fuzz! {
    fn any_content_is_read_or_said_to_be_unreadable(
        (kind, content) in (select(KINDS), json(NAMES)),
    ) {
        let _ = told(kind, &content.to_string());
    }

    /// What no field of ours holds may be anything that has the form of JSON.
    fn any_text_in_the_place_of_content_is_too(
        (kind, content) in (select(KINDS), text_from(WORDS)),
    ) {
        let told = told(kind, &content);
        if kind != "comm_msg" && serde_json::from_str::<IgnoredAny>(&content).is_err() {
            assert_eq!(told, Told::Unreadable);
        }
    }

    fn nothing_unsigned_is_read(frames in vec(vec(any::<u8>(), 0..40), 0..9)) {
        let mut frames: Vec<Bytes> = frames.into_iter().map(Bytes::from).collect();
        frames.insert(frames.len() / 2, Bytes::from_static(DELIMITER));
        assert!(read(&signer(), &frames).is_none());
    }
}
