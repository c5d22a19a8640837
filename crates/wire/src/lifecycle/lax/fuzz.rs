use barchan_testkit::{fuzz, inputs};
use proptest::prelude::any;
use proptest::sample::select;

use super::*;

fuzz! {
    fn whole_numbers_keep_their_value_in_every_spelling(
        number in any::<i64>(),
        zeros in "0{0,4}",
        blank in "[ \t]{0,2}",
    ) {
        let texts = [
            format!("{blank}{number}{blank}"),
            format!("{number}.{zeros}"),
        ];
        for text in texts {
            assert_eq!(integer(&json!(text)), Ok(number), "{text:?}");
        }
        assert_eq!(integer(&json!(number)), Ok(number));
        assert_eq!(integer(&json!(number as i32 as f64)), Ok(i64::from(number as i32)));
    }

    fn any_value_is_a_number_or_a_refusal(value in inputs::json(&["a"])) {
        if let (Ok(number), Some(float)) = (integer(&value), value.as_f64()) {
            assert!((number as f64 - float).abs() <= float.abs() * 1e-15);
        }
        let _ = boolean(&value);
    }

    fn truth_does_not_depend_on_case(
        word in select(["true", "false", "on", "off", "yes", "no", "y", "n", "t", "f"].as_slice()),
        capitals in any::<u8>(),
    ) {
        let letters = word.chars().enumerate().map(|(at, letter)| {
            if capitals >> at & 1 == 1 { letter.to_ascii_uppercase() } else { letter }
        });
        let text: String = letters.collect();
        assert_eq!(boolean(&json!(text)), boolean(&json!(word)));
        assert!(boolean(&json!(text)).is_ok());
    }
}
