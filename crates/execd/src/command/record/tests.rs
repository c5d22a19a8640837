use super::*;

/// Everything from an offset on, stretch by stretch.
fn all(record: &Record, mut at: u64) -> Vec<(Source, u64, String)> {
    let mut buffer = [0; 7];
    let mut found = Vec::new();
    while let Some(piece) = record.read(at, &mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..piece.bytes]).into_owned();
        at = piece.at + piece.bytes as u64;
        found.push((piece.source, piece.at, text));
    }
    found
}

fn out(at: u64, text: &str) -> (Source, u64, String) {
    (Source::Stdout, at, text.to_owned())
}

fn err(at: u64, text: &str) -> (Source, u64, String) {
    (Source::Stderr, at, text.to_owned())
}

#[test]
fn bytes_keep_their_order_their_stream_and_their_offset() {
    let mut record = Record::default();
    record.push(Source::Stdout, b"one", 100);
    record.push(Source::Stdout, b"two", 100);
    record.push(Source::Stderr, b"three", 100);
    record.push(Source::Stdout, b"", 100);
    record.push(Source::Stdout, b"four", 100);
    let wanted = [out(0, "onetwo"), err(6, "three"), out(11, "four")];
    assert_eq!(all(&record, 0), wanted);
    assert_eq!(
        all(&record, 4),
        [out(4, "wo"), err(6, "three"), out(11, "four")]
    );
    assert_eq!(all(&record, 13), [out(13, "ur")]);
    assert_eq!(all(&record, 15), []);
    assert_eq!(all(&record, u64::MAX), []);
}

#[test]
fn the_front_is_dropped_first() {
    let mut record = Record::default();
    record.push(Source::Stderr, b"012345", 8);
    record.push(Source::Stdout, b"6789", 8);
    assert_eq!((record.start(), record.end()), (2, 10));
    assert_eq!(all(&record, 0), [err(2, "2345"), out(6, "6789")]);
    record.shorten(3);
    assert_eq!(all(&record, 0), [out(7, "789")]);
    record.shorten(0);
    assert_eq!((record.start(), record.end(), record.weight()), (10, 10, 0));
    record.push(Source::Stdout, b"x", 8);
    assert_eq!(all(&record, 0), [out(10, "x")]);
}

#[test]
fn a_long_record_is_the_same_as_a_short_one() {
    let mut record = Record::default();
    let limit = 4 * RECORD_HEAP_BYTES_MAX;
    let block: Vec<u8> = (0..60_000_u32).map(|at| (at % 251) as u8).collect();
    for round in 0..100 {
        let source = if round % 3 == 0 {
            Source::Stderr
        } else {
            Source::Stdout
        };
        record.push(source, &block, limit);
    }
    assert_eq!(record.end(), 6_000_000);
    assert_eq!(record.end() - record.start(), limit as u64);
    assert!(matches!(record.store, Store::File(_)));
    let mut buffer = vec![0; 100_000];
    let mut at = record.start();
    while let Some(piece) = record.read(at, &mut buffer) {
        assert_eq!(piece.at, at);
        for byte in &buffer[..piece.bytes] {
            assert_eq!(*byte, (at % 60_000 % 251) as u8, "at {at}");
            at += 1;
        }
        let round = (at - 1) / 60_000;
        let source = if round % 3 == 0 {
            Source::Stderr
        } else {
            Source::Stdout
        };
        assert_eq!(piece.source, source, "up to {at}");
    }
    assert_eq!(at, record.end());
}

#[test]
fn streams_that_alternate_without_end_take_no_more_memory_than_long_ones() {
    let mut record = Record::default();
    for round in 0..RECORD_TURNS_MAX * 2 {
        let source = if round % 2 == 0 {
            Source::Stderr
        } else {
            Source::Stdout
        };
        record.push(source, b"x", usize::MAX);
    }
    assert_eq!(record.turns.len(), RECORD_TURNS_MAX);
    assert_eq!(record.end() - record.start(), RECORD_TURNS_MAX as u64);
    assert_eq!(all(&record, record.end() - 2).len(), 2);
}
