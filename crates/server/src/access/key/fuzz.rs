use barchan_testkit::fuzz;
use barchan_testkit::inputs::bytes_from;

use super::*;

const WORDS: &[&[u8]] = &[
    b"barchan_",
    b"0123456789ab",
    b"_",
    b"0123456789abcdef",
    b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    b"A",
    "é".as_bytes(),
];

fuzz! {
    fn what_is_taken_for_a_key_has_its_shape_to_the_byte(text in bytes_from(WORDS)) {
        if let Some(id) = id_in(&text) {
            assert_eq!(text.len(), PREFIX.len() + ID_DIGITS + 1 + SECRET_DIGITS);
            let (begin, end) = text.split_at(PREFIX.len() + ID_DIGITS);
            assert_eq!(begin, format!("{PREFIX}{id}").as_bytes());
            assert!(end[1..].iter().all(u8::is_ascii_hexdigit) && end[0] == b'_');
        }
    }
}
