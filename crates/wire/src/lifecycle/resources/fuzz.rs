use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::prelude::any;
use proptest::sample::select;

use super::*;

const WORDS: &[&str] = &[
    "1", "0", "9", ".", "m", "Mi", "G", "k", "ib", "-", "e", "_", "١", " ",
];
const UNITS: &[(&str, u128)] = &[
    ("", 1),
    ("k", 1000),
    ("Ki", 1 << 10),
    ("M", 1_000_000),
    ("Mi", 1 << 20),
    ("G", 1_000_000_000),
    ("Gi", 1 << 30),
    ("T", 1_000_000_000_000),
    ("Ti", 1 << 40),
    ("TiB", 1 << 40),
    ("kb", 1000),
];

fuzz! {
    fn amounts_of_bytes_are_number_times_unit(number in any::<u64>(), unit in select(UNITS)) {
        for number in [number, number >> 30, number >> 50, number >> 60] {
            let amount = u128::from(number) * unit.1;
            let wanted = u64::try_from(amount).ok().filter(|amount| *amount > 0);
            assert_eq!(bytes(&format!("{number}{}", unit.0)), wanted);
        }
    }

    fn amounts_of_cpu_are_thousandths(millis in 1_u64..u64::MAX, zeros in "0{0,3}") {
        let (whole, rest) = (millis / 1000, millis % 1000);
        assert_eq!(cpu_millis(&format!("{whole}.{rest:03}{zeros}")), Some(millis));
        assert_eq!(cpu_millis(&format!("{zeros}{millis}m")), Some(millis));
    }

    fn no_text_is_an_amount_of_nothing(text in text_from(WORDS)) {
        for amount in [cpu_millis(&text), bytes(&text), count(&text)] {
            assert_ne!(amount, Some(0));
            assert!(amount.is_none() || text.is_ascii());
        }
    }
}
