use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::num::f64;
use proptest::prelude::any;
use serde_json::json;

use super::*;

const WORDS: &[&str] = &[
    "2030-01-02",
    "T",
    " ",
    "03:04:05",
    "Z",
    "+02:00",
    "-23:59",
    ".5",
    "1e300",
    "nan",
    "inf",
    "9999-12-31",
    "-9999-01-01",
    "[UTC]",
    "9",
    "-",
    ":",
    "é",
];

fuzz! {
    /// From the year 1 to the year 9999, all that four digits can say.
    fn moments_come_back_as_they_were_written(
        micros in -62_135_596_800_000_000_i64..253_402_207_200_000_000,
    ) {
        let time = Time::from_micros(micros).unwrap();
        assert_eq!(Time::read(&json!(time.to_string())), Some(time), "{time}");
        assert_eq!(Time::read(&json!(time.to_string().to_lowercase())), Some(time));
    }

    fn any_text_is_a_moment_or_none(text in text_from(WORDS), number in f64::ANY) {
        for value in [json!(text), json!(number), json!(number.to_string())] {
            if let Some(time) = Time::read(&value) {
                assert!(Time::from_micros(time.as_micros()) == Some(time), "{value}");
            }
        }
    }

    fn deadlines_never_lie_before_their_start(micros in any::<i64>(), seconds in any::<u64>()) {
        let Some(start) = Time::from_micros(micros) else { return };
        for seconds in [seconds, seconds >> 20, seconds >> 40] {
            assert!(start.plus_seconds(seconds).is_none_or(|end| end >= start));
        }
    }
}
