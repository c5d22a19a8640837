use std::ffi::OsStr;

use barchan_testkit::fuzz;
use barchan_testkit::inputs::bytes_from;

use super::*;

const WORDS: &[&[u8]] = &[
    b"\\", b"\\x5c", b"\\xff", b"/", b"$HOME", b"~", b"\xff", b"\0",
];

fuzz! {
    fn every_path_has_an_exact_spelling(name in bytes_from(WORDS)) {
        let path = Path::new(OsStr::from_bytes(&name));
        let text = Spelling::Exact.write(path);
        assert_eq!(unescape(text.as_bytes()), name);
    }

    fn what_is_read_is_a_path(text in bytes_from(WORDS)) {
        let value = |name: &str| (name == "HOME").then(|| "/root".to_owned());
        for spelling in [Spelling::Expanded, Spelling::Exact] {
            if let Ok(path) = spelling.read(&text, &value) {
                let bytes = path.as_os_str().as_bytes();
                assert!(!bytes.contains(&0) && !bytes.is_empty() && bytes.len() <= 4096);
            }
        }
    }
}
