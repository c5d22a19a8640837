use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::collection::vec;
use proptest::prelude::any;

use super::*;

const BYTES_MAX: u64 = 50;
const FRAMES_MAX: usize = 4;

const WORDS: &[&[u8]] = &[
    b"\0\x01x",
    b"\x01\x02ab",
    b"\x01\0",
    b"\0\0",
    b"\x04\x06\x05READY",
    b"\0\xff",
    b"\x01\x33",
    b"\x02\0\0\0\0\0\0\0\x03abc",
    b"\x03\0\0\0\0\0\0\0\x40",
    b"\x02\0\0\x20\0\0\0\0\0",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff",
];

/// What comes of pieces, in order; nothing more once the connection is broken.
fn items(pieces: &[&[u8]]) -> Vec<Result<Item, Broken>> {
    let mut decoder = Decoder::new(BYTES_MAX, FRAMES_MAX);
    let mut items = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(item)) => items.push(Ok(item)),
                Ok(None) => break,
                Err(broken) => {
                    items.push(Err(broken));
                    return items;
                }
            }
        }
        assert!(decoder.unread.len() <= BYTES_MAX as usize + 9);
        let held: usize = decoder.frames.iter().map(Bytes::len).sum();
        assert!(held <= BYTES_MAX as usize && decoder.frames.len() <= FRAMES_MAX);
    }
    items
}

fuzz! {
    fn frames_are_the_same_wherever_they_are_cut((bytes, places) in with_cuts(bytes_from(WORDS))) {
        assert_eq!(items(&cut(&bytes, &places)), items(&[&bytes]));
    }

    fn a_message_is_read_as_it_was_written_or_passed_over(
        frames in vec(vec(any::<u8>(), 0..30), 1..6),
    ) {
        let parts: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let bytes = frames.iter().map(Vec::len).sum::<usize>() as u64;
        let wanted = if bytes > BYTES_MAX || frames.len() > FRAMES_MAX {
            Item::Oversized(bytes)
        } else {
            Item::Message(frames.iter().cloned().map(Bytes::from).collect())
        };
        let next = Item::Message(vec![Bytes::from_static(b"next")]);
        let all = [message(&parts), message(&[b"next"])].concat();
        assert_eq!(items(&[&all]), [Ok(wanted), Ok(next)]);
    }
}
