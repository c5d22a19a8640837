use super::*;

/// What comes out when `reads` go in; `None` stands for a silence.
fn split(keep_ends: bool, bytes_max: usize, reads: &[Option<&[u8]>]) -> Vec<String> {
    let mut lines = Lines::new(keep_ends, bytes_max);
    let mut texts = Vec::new();
    let mut emit = |text: Cow<'_, str>| texts.push(text.into_owned());
    for read in reads {
        match read {
            Some(bytes) => lines.push(bytes, &mut emit),
            None => lines.settle(&mut emit),
        }
    }
    lines.finish(&mut emit);
    texts
}

#[test]
fn lines_are_one_event_each() {
    for (input, kept, stripped) in [
        (&b"one\ntwo"[..], vec!["one\n", "two"], vec!["one", "two"]),
        (
            b"a\n\nb\r\n\r\nc\n",
            vec!["a\n", "\n", "b\r\n", "\r\n", "c\n"],
            vec!["a", "\n", "b", "\n", "c"],
        ),
        (
            b"1%\r2%\rend\n",
            vec!["1%\r", "2%\r", "end\n"],
            vec!["1%", "2%", "end"],
        ),
        (b"x\r", vec!["x\r"], vec!["x"]),
        (
            b"\xff\xfebad\nok\n",
            vec!["\u{fffd}\u{fffd}bad\n", "ok\n"],
            vec!["\u{fffd}\u{fffd}bad", "ok"],
        ),
        (b"", vec![], vec![]),
        (b"\n", vec!["\n"], vec!["\n"]),
        (b"a\0b\n", vec!["a\0b\n"], vec!["a\0b"]),
    ] {
        assert_eq!(split(true, 1000, &[Some(input)]), kept);
        assert_eq!(split(false, 1000, &[Some(input)]), stripped);
    }
}

#[test]
fn the_place_of_a_cut_between_reads_changes_nothing() {
    let input = "é\r\n\n文件🤣\rx\r\r\n\nende".as_bytes();
    let whole = split(true, 1000, &[Some(input)]);
    let stripped = split(false, 1000, &[Some(input)]);
    assert_eq!(whole.concat().as_bytes(), input);
    for first in 0..=input.len() {
        for second in first..=input.len() {
            let reads = [
                Some(&input[..first]),
                Some(&input[first..second]),
                Some(&input[second..]),
            ];
            assert_eq!(split(true, 1000, &reads), whole);
            assert_eq!(split(false, 1000, &reads), stripped);
        }
    }
}

#[test]
fn a_lone_carriage_return_is_handed_out_after_a_silence() {
    for (reads, kept, stripped) in [
        (
            vec![Some(&b"1%\r"[..]), None, Some(b"2%\r"), None],
            vec!["1%\r", "2%\r"],
            vec!["1%", "2%"],
        ),
        // A line feed that comes late still belongs to its carriage return.
        (
            vec![Some(b"b\r"), None, Some(b"\nc\n")],
            vec!["b\r", "\n", "c\n"],
            vec!["b", "c"],
        ),
        (
            vec![Some(b"b\r"), None, Some(b"\r\n")],
            vec!["b\r", "\r\n"],
            vec!["b", "\n"],
        ),
    ] {
        assert_eq!(split(true, 1000, &reads), kept);
        assert_eq!(split(false, 1000, &reads), stripped);
    }
}

#[test]
fn a_line_beyond_the_limit_is_cut_between_characters_and_says_so() {
    for (reads, wanted) in [
        (
            vec![Some(&b"abcdefgh\nx\n"[..])],
            vec!["abcd[barchan: 4 more bytes of this line left out]\n", "x\n"],
        ),
        (
            vec![Some(b"ab"), Some(b"cdef"), Some(b"gh"), Some(b"\r\nx")],
            vec!["abcd[barchan: 4 more bytes of this line left out]\r\n", "x"],
        ),
        (
            vec![Some("abcé\n".as_bytes())],
            vec!["abc[barchan: 2 more bytes of this line left out]\n"],
        ),
        (vec![Some(b"abcd\n")], vec!["abcd\n"]),
    ] {
        assert_eq!(split(true, 4, &reads), wanted);
    }
}

#[test]
fn memory_stays_bounded_when_a_line_never_ends() {
    let mut lines = Lines::new(true, 100);
    for _ in 0..1000 {
        lines.push(&[b'x'; 1000], &mut |_| panic!("no line has ended"));
    }
    assert!(lines.partial.capacity() < 1000);
    assert_eq!(lines.left_out, 999_900);
}

#[test]
fn a_cut_character_is_recognised() {
    for (bytes, whole) in [
        (&b"ab"[..], 2),
        ("é".as_bytes(), 2),
        (b"a\xc3", 1),
        (b"a\xf0\x9f\xa4", 1),
        (b"a\xff", 2),
        (b"a\x80\x80\x80", 4),
        (b"", 0),
    ] {
        assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
    }
}
