use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::prelude::any;

use super::*;

const WORDS: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\r",
    b"x",
    b"word",
    b"\xc3\xa9",
    b"\xff",
    b"\xf0\x9f\x98",
    b"\0",
    "🤣".as_bytes(),
    b"\x1b[31m",
];

fn events(keep_ends: bool, bytes_max: usize, pieces: &[&[u8]]) -> Vec<String> {
    let mut lines = Lines::new(keep_ends, bytes_max);
    let mut events = Vec::new();
    let mut emit = |text: Cow<'_, str>| events.push(text.into_owned());
    for piece in pieces {
        lines.push(piece, &mut emit);
        assert!(lines.partial.len() <= bytes_max);
    }
    lines.finish(&mut emit);
    events
}

fuzz! {
    fn output_is_the_same_however_it_was_read(
        (output, places) in with_cuts(bytes_from(WORDS)),
        keep_ends in any::<bool>(),
    ) {
        let whole = events(keep_ends, 1 << 20, &[&output]);
        assert_eq!(events(keep_ends, 1 << 20, &cut(&output, &places)), whole);
        if keep_ends {
            assert_eq!(whole.concat(), String::from_utf8_lossy(&output));
        }
        let is_whole_line = |event: &String| {
            let ends = event.matches(['\n', '\r']).count() - event.matches("\r\n").count();
            !event.is_empty() && ends <= 1
        };
        assert!(whole.iter().all(is_whole_line), "{whole:?}");
    }

    fn no_line_grows_beyond_its_limit(
        (output, places) in with_cuts(bytes_from(WORDS)),
        bytes_max in 4_usize..20,
    ) {
        let marker = "[barchan: 00 more bytes of this line left out]\r\n".len();
        for event in events(true, bytes_max, &cut(&output, &places)) {
            // A byte that is no UTF-8 is shown as a character of three.
            assert!(event.len() <= 3 * bytes_max + marker + 2, "{event:?}");
        }
    }
}
