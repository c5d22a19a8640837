use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::select;

use super::*;

const WORDS: &[&[u8]] = &[
    b"data:",
    b"data: ",
    b"{",
    b"}",
    b"{\"type\":\"stdout\"}",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"\r",
    b":",
    b"event: x\n",
    b"[",
    b"\0",
    b"\xff",
    b" ",
];

/// What may stand before an event and behind it.
const FORMS: &[(&str, &str)] = &[
    ("", "\n\n"),
    ("", "\n"),
    ("data: ", "\n\n"),
    ("data:", "\r\n\r\n"),
];

fn frames_of(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut frames = Frames::default();
    let mut found = Vec::new();
    for piece in pieces {
        found.extend(frames.push(piece).unwrap());
    }
    found.extend(frames.finish());
    found
}

fuzz! {
    fn any_stream_gives_the_same_frames_however_it_is_cut(
        (stream, places) in with_cuts(bytes_from(WORDS)),
    ) {
        let whole = frames_of(&[&stream]);
        assert_eq!(frames_of(&cut(&stream, &places)), whole);
        let held: usize = whole.iter().map(Vec::len).sum();
        assert!(held <= stream.len());
        assert!(whole.iter().all(|frame| !frame.contains(&b'\n') || stream.starts_with(b"data:")
            || stream.windows(6).any(|window| window == b"\ndata:")));
    }

    fn frames_come_back_as_they_were_sent(
        objects in vec("\\{[a-z\":é ]{0,20}\\}", 0..6),
        form in select(FORMS),
        places in vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let stream: String = objects.iter().map(|it| format!("{}{it}{}", form.0, form.1)).collect();
        let frames = frames_of(&cut(stream.as_bytes(), &places));
        assert_eq!(frames, objects.iter().map(|it| it.clone().into_bytes()).collect::<Vec<_>>());
    }
}
