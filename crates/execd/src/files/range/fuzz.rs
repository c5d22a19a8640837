use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::prelude::any;

use super::*;

const WORDS: &[&str] = &[
    "bytes",
    "=",
    "-",
    ",",
    " ",
    "0",
    "1",
    "9",
    "18446744073709551615",
    "99999999999999999999999",
    "bytes=",
    "+",
    "items=",
    "٣",
];

fuzz! {
    fn a_part_lies_within_its_file(header in text_from(WORDS), size in any::<u64>()) {
        for size in [size, size % 12, 0, u64::MAX] {
            if let Wanted::Part { start, len } = parse(&header, size) {
                assert!(len > 0 && start.checked_add(len).is_some_and(|end| end <= size));
            }
        }
    }

    /// Over every byte of a small file, by the definition of what a range names.
    fn ranges_name_the_bytes_that_http_says(
        size in 0_u64..12,
        from in proptest::option::of(0_u64..15),
        to in proptest::option::of(0_u64..15),
    ) {
        let word = |number: Option<u64>| number.map_or(String::new(), |it| it.to_string());
        let header = format!("bytes={}-{}", word(from), word(to));
        let is_named = |at: &u64| match (from, to) {
            (Some(from), Some(to)) => (from..=to).contains(at),
            (Some(from), None) => *at >= from,
            (None, Some(last)) => *at + last >= size,
            (None, None) => false,
        };
        let named: Vec<u64> = (0..size).filter(is_named).collect();
        let found: Vec<u64> = match parse(&header, size) {
            Wanted::Part { start, len } => (start..start + len).collect(),
            Wanted::Nothing => Vec::new(),
            Wanted::Whole => panic!("{header} asks for a part"),
        };
        assert_eq!(found, named, "{header} of {size}");
    }
}
