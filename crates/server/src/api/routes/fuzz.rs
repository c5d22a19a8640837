use barchan_testkit::fuzz;
use barchan_testkit::inputs::text_from;
use proptest::sample::select;

use super::*;

const WORDS: &[&str] = &[
    "/",
    "v1",
    "sandboxes",
    "a",
    "%2f",
    "..",
    "endpoints",
    "44772",
    "proxy",
    "diagnostics",
    "logs",
    "metrics",
    "events",
    "%",
    "pools",
    "é",
    "//",
];
const METHODS: &[Method] = &[
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

fuzz! {
    fn every_path_leads_to_one_answer(path in text_from(WORDS), method in select(METHODS)) {
        match find(&method, &path) {
            Found::Operation(_, place) => {
                assert_eq!(place.is_v1, path.starts_with("/v1/"));
                assert!(!path.ends_with('/'));
            }
            Found::Slash => {
                let shorter = find(&method, path.strip_suffix('/').unwrap());
                assert!(!matches!(shorter, Found::Nothing | Found::Slash));
            }
            Found::OtherMethods(allowed) => {
                assert!(!allowed.is_empty() && !allowed.contains(&method));
                let other = find(&allowed[0], &path);
                assert!(matches!(other, Found::Operation(..)));
            }
            Found::Nothing => {
                assert!(METHODS.iter().all(|it| matches!(find(it, &path), Found::Nothing)));
            }
        }
    }
}
