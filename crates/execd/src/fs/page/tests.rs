//! Pages at their edges.

use super::fuzz::{model, page};
use super::*;

#[test]
fn pages_are_exact_at_their_edges() {
    for (text, offset, limit, lines, wanted, next) in [
        ("a\nb\nc", 0, 2, 2, "a\nb", Some(2)),
        ("a\nb\nc", 2, 2, 1, "c", None),
        ("a\nb\n", 0, 2, 2, "a\nb", None),
        ("a\r\nb\rc\n", 0, 9, 3, "a\nb\nc", None),
        ("\n\n\n", 0, 2, 2, "\n", Some(2)),
        ("\n", 0, 1, 1, "", None),
        ("\r\r\n\n", 0, 9, 3, "\n\n", None),
    ] {
        for block in 1..=text.len() {
            let cut = page(text, offset, limit, 1000, block).unwrap();
            let found = (cut.lines, cut.text.as_slice(), cut.next);
            assert_eq!(found, (lines, wanted.as_bytes(), next), "{text:?} {block}");
        }
    }
    assert_eq!(page("a\nb\n", 2, 1, 1000, 9), Err(2));
    assert_eq!(page("a\nb", u64::MAX - 9, 1, 1000, 9), Err(2));
}

#[test]
fn a_page_is_settled_once_a_line_behind_it_begins() {
    for (blocks, settled) in [
        (&["a\n", "b"][..], true),
        (&["a\r", "\n"], false),
        (&["a\r", "\n", "\n"], true),
        (&["a\n"], false),
        (&["a"], false),
    ] {
        let mut page = Page::new(0, 1, 1000);
        blocks.iter().for_each(|block| page.feed(block.as_bytes()));
        assert_eq!(page.is_settled(), settled, "{blocks:?}");
        let cut = page
            .finish(false)
            .unwrap_or_else(|_| model("a\nb", 0, 1, 9).unwrap());
        assert_eq!(cut.text, b"a");
    }
}

#[test]
fn bytes_that_are_no_text_stay_as_they_are() {
    for (text, kept) in [
        (&b"ab\xff"[..], 3),
        (b"ab\xe2\x82", 2),
        (b"ab\xe2\x82\xac", 5),
        (b"\x80\x80\x80\x80", 4),
        (b"\xf0\x9f\x92", 0),
        (b"", 0),
    ] {
        assert_eq!(whole_characters(text), kept, "{text:?}");
    }
}
