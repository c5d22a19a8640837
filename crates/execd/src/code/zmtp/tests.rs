use super::*;

/// Decodes bytes that come in pieces of this size.
fn decode(bytes: &[u8], piece: usize) -> Result<Vec<Item>, Broken> {
    let mut decoder = Decoder::new(1000, 4);
    let mut items = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(item) = decoder.next()? {
            items.push(item);
        }
        assert!(decoder.unread.len() <= 1000 + 9 + piece.len());
    }
    Ok(items)
}

fn message_of(frames: &[&[u8]]) -> Item {
    Item::Message(
        frames
            .iter()
            .map(|frame| Bytes::copy_from_slice(frame))
            .collect(),
    )
}

#[test]
fn greetings_are_told_apart() {
    assert!(is_greeting(&GREETING));
    for (at, byte) in [(0, 0), (9, 0), (10, 1), (12, b'P'), (16, b'X')] {
        let mut greeting = GREETING;
        greeting[at] = byte;
        assert!(!is_greeting(&greeting), "byte {at}");
    }
}

#[test]
fn messages_are_read_as_they_were_written_whatever_the_pieces() {
    let long = [7; 300];
    let all = [
        message(&[b"a", b"", &long]),
        ready("DEALER", "me"),
        message(&[b"b"]),
    ]
    .concat();
    for piece in [1, 2, 7, 64, 10_000] {
        let items = decode(&all, piece).unwrap();
        assert_eq!(
            items,
            [
                message_of(&[b"a", b"", &long]),
                Item::Command,
                message_of(&[b"b"])
            ]
        );
    }
}

#[test]
fn what_is_too_large_is_passed_over_and_counted() {
    let large = [7; 600];
    for (frames, wanted) in [
        (vec![&large[..], &large, b"x"], Item::Oversized(1201)),
        (vec![&[1; 1001][..]], Item::Oversized(1001)),
        (vec![&[1; 1000][..]], message_of(&[&[1; 1000]])),
        (vec![&b""[..]; 5], Item::Oversized(0)),
    ] {
        let all = [message(&frames), message(&[b"next"])].concat();
        for piece in [1, 100, 10_000] {
            let items = decode(&all, piece).unwrap();
            assert_eq!(items, [wanted.clone(), message_of(&[b"next"])]);
        }
    }
}

#[test]
fn an_impossible_length_breaks_the_connection_and_a_huge_one_takes_no_memory() {
    assert_eq!(
        decode(&[LONG, 255, 255, 255, 255, 255, 255, 255, 255], 9),
        Err(Broken)
    );
    let huge = [LONG, 0, 0, 32, 0, 0, 0, 0, 0, 1, 2, 3];
    assert_eq!(decode(&huge, 5), Ok(Vec::new()));
}
