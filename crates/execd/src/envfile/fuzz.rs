use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::collection::vec;

use super::*;

const WORDS: &[&str] = &[
    "A",
    "B=",
    "=",
    "'",
    "\"",
    "\\",
    "\n",
    "$A",
    "${A}",
    "$",
    "${",
    "export ",
    "#",
    " ",
    "\r\n",
    "A='x'\n",
    "B=\"$A$A\"\n",
    "\\n",
    "é",
];

fuzz! {
    fn any_settings_file_is_read(text in text_from(WORDS)) {
        let settings = parse(&text, &|_| None);
        assert!(settings.keys().all(|name| is_name(name)));
    }

    /// As the SDK's `set_env` appends it.
    fn settings_in_single_quotes_come_back_exactly(
        pairs in vec(("[A-Z_][A-Z0-9_]{0,5}", "[^']{0,20}"), 0..6),
    ) {
        let lines = pairs.iter().map(|(name, value)| format!("{name}='{value}'\n"));
        let settings = parse(&lines.collect::<String>(), &|_| None);
        assert_eq!(settings, pairs.into_iter().collect::<BTreeMap<_, _>>());
    }

    /// Every line doubles the value of the one before.
    fn references_to_references_do_not_fill_the_memory(
        lines in 1_usize..1000,
        quote in "[\"]?",
        times in 1_usize..9,
    ) {
        let line = format!("A={quote}{}{quote}\n", "$A".repeat(times));
        let text = format!("A=0123456789\n{}", line.repeat(lines));
        let held: usize = parse(&text, &|_| None).values().map(String::len).sum();
        assert!(held <= text.len() + EXPANDED_BYTES_MAX, "{held}");
    }
}
