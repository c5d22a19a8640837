//! What holds for every body, whatever a sandbox sends.

use barchan_testkit::inputs;

use super::*;

const WORDS: &[&[u8]] = &[
    b"0\r\n",
    b"\r\n",
    b"3\r\nabc\r\n",
    b"a",
    b"F",
    b";",
    b"X: y\r\n",
    b"\n",
];

barchan_testkit::fuzz! {
    fn a_body_ends_at_one_place_however_it_is_cut(
        (stream, places) in inputs::with_cuts(inputs::bytes_from(WORDS)),
    ) {
        let mut whole = Body::Chunks(FIRST);
        let expected = whole.pass(&stream).ok();
        let mut cut = Body::Chunks(FIRST);
        let mut total = Some(0);
        for piece in inputs::cut(&stream, &places) {
            if cut.is_done() {
                break;
            }
            let passed = cut.pass(piece);
            total = total.zip(passed.ok()).map(|(total, passed)| total + passed);
            if total.is_none() {
                break;
            }
        }
        assert_eq!(total, expected);
        if expected.is_some() {
            assert_eq!(cut, whole);
        }
    }

    fn a_shape_lies_within_its_head(bytes in inputs::bytes_from(&[
        b"POST / HTTP/1.1\r\n", b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n",
        b"Upgrade: h2c\r\n", b"\r\n", b"X: y\r\n", b" ",
    ])) {
        if let Ok(shape) = shape(&bytes) {
            assert!(shape.head_bytes <= bytes.len());
        }
    }
}
