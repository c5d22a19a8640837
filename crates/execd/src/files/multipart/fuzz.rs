use barchan_testkit::fuzz;
use barchan_testkit::inputs::{bytes_from, cut, with_cuts};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::Strategy;

use super::tests::parts_of;
use super::*;

const TYPE: &str = "multipart/form-data; boundary=b0";

/// What a body and everything near one is made of.
const WORDS: &[&[u8]] = &[
    b"--b0",
    b"\r\n--b0\r\n",
    b"\r\n--b0--",
    b"\r\n",
    b"\r",
    b"\n",
    b"-",
    b"--b",
    b"\r\n\r\n",
    b"Content-Disposition: form-data; name=\"file\"\r\n\r\n",
    b"Content-Disposition: form-data; name=",
    b"Content-Type: x/y\r\n",
    b"\"",
    b"\\\"",
    b"; name=\"a\\\"b\"",
    b"x",
];

/// Content that looks like a delimiter and is none.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let tricky: &[&[u8]] = &[b"\r\n--b", b"\r\n", b"--b0", b"\r", b"-", b"x", b"\r\n--b1"];
    let free = |bytes: &Vec<u8>| {
        memmem::find(&[b"\r\n", bytes.as_slice()].concat(), b"\r\n--b0").is_none()
    };
    bytes_from(tricky).prop_filter("holds the delimiter", free)
}

fn body(contents: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, content) in contents {
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        body.extend_from_slice(b"--b0\r\nContent-Disposition: form-data; name=\"");
        body.extend_from_slice(quoted.as_bytes());
        body.extend_from_slice(b"\"; filename=\"f\"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b0--\r\n");
    body
}

fuzz! {
    fn multipart_gives_back_what_a_client_wrote(
        (contents, places) in with_cuts(vec(("[a-z\"\\\\ ;=é]{1,9}", content()), 1..5))
    ) {
        let body = body(&contents);
        assert_eq!(parts_of(TYPE, &cut(&body, &places)).unwrap(), contents);
    }

    fn multipart_reads_the_same_however_it_is_cut((body, places) in with_cuts(bytes_from(WORDS))) {
        let whole = parts_of(TYPE, &[&body]);
        assert_eq!(parts_of(TYPE, &cut(&body, &places)), whole);
        let single: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(parts_of(TYPE, &single), whole);
    }

    fn multipart_holds_no_more_than_a_head(
        head in bytes_from(WORDS),
        noise in vec(any::<u8>(), 1..64),
    ) {
        let mut parser = Parser::new(TYPE).unwrap();
        let noise = Bytes::from(noise.repeat(1000));
        let mut read = head.into();
        for _ in 0..4 {
            parser.feed(std::mem::replace(&mut read, noise.clone()));
            let broken = loop {
                match parser.next() {
                    Ok(Some(_)) => {}
                    other => break other.is_err(),
                }
            };
            if broken {
                return;
            }
            assert!(parser.carry.capacity() <= 4 * PART_HEAD_BYTES_MAX);
        }
    }

    fn multipart_takes_any_content_type(text in "multipart/form-data; ?[a-z\"\\\\=; é]{0,40}") {
        if let Ok(parser) = Parser::new(&text) {
            assert!((5..=204).contains(&parser.delimiter.needle().len()));
        }
    }
}
