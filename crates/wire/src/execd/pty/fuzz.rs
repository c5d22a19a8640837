use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, json, text_from};
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

const WORDS: &[&str] = &[
    "{\"type\":",
    "\"stdin\"",
    "\"resize\"",
    "\"signal\"",
    "\"ping\"",
    ",\"data\":",
    ",\"cols\":",
    ",\"rows\":",
    "\"SIGINT\"",
    "65535",
    "65536",
    "0",
    "-1",
    "1e3",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "}",
];

fuzz! {
    fn a_text_frame_is_a_lawful_request_or_none(frame in text_from(WORDS)) {
        if let Some(Ask::Resize { cols, rows }) = text(&frame) {
            assert!((1..=SIZE_MAX).contains(&cols) && (1..=SIZE_MAX).contains(&rows), "{frame}");
        }
    }

    fn what_is_read_as_a_request_is_read_again(
        value in json(&["type", "data", "cols", "rows", "signal", "stdin", "resize", "ping"]),
    ) {
        if let Some(ask) = text(&value.to_string()) {
            let again = serde_json::to_string(&ask).unwrap();
            assert_eq!(text(&again), Some(ask));
        }
    }

    fn only_input_is_input(frame in bytes_from(&[b"\0", b"\x01", b"\x02", b"\x03", b"a", b""])) {
        match binary(&frame) {
            Some(Input::Bytes(bytes)) => assert_eq!(frame, [&[STDIN], bytes].concat()),
            Some(Input::Ask(ask)) => panic!("{ask:?} out of bytes"),
            None => assert_ne!(frame.first(), Some(&STDIN)),
        }
    }

    fn output_is_shown_as_it_was_sent(
        bytes in vec(any::<u8>(), 0..64),
        offset in any::<u64>(),
        cut in 0_usize..9,
    ) {
        for frame in [output(STDOUT, &bytes), output(STDERR, &bytes), replay(offset, &bytes)] {
            assert_eq!(shown(&frame), Some(&bytes[..]));
        }
        assert_eq!(shown(&replay(offset, &bytes)[..cut]), None);
    }
}
