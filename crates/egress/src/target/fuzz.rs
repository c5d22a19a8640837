use barchan_testkit::{fuzz, inputs};

use super::*;

const WORDS: &[&str] = &[
    "*",
    "*.",
    ".",
    "example",
    "com",
    ":",
    "443",
    "-",
    "/",
    "8",
    "32",
    "128",
    "10.0.0.0",
    "[",
    "]",
    "2001:db8::",
    "::",
    "::ffff:",
    "ffff",
    "0",
    "ü",
    "://",
    "%",
    "\0",
    "1.2.3.4",
];

fuzz! {
    fn a_target_means_the_same_when_it_is_written_again(text in inputs::text_from(WORDS)) {
        match Target::parse(&text) {
            Ok(target) => {
                let again = target.to_string();
                assert_eq!(Target::parse(&again), Ok(target), "{again}");
            }
            Err(refused) => {
                let shown = refused.to_string();
                assert!(shown.len() < 1500 && !shown.chars().any(char::is_control), "{shown}");
            }
        }
    }
}
