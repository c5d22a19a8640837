//! Inputs for fuzz targets: what is almost right, and what arrives in pieces.

use std::ops::Range;

use proptest::collection::vec;
use proptest::num::f64;
use proptest::prelude::any;
use proptest::sample::{Index, select};
use proptest::strategy::{Just, Strategy, Union};
use serde_json::Value;

/// Bytes that a parser takes for its own: its words in any order, with noise between them.
pub fn bytes_from(words: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let word = select(words).prop_map(<[u8]>::to_vec);
    let piece = Union::new_weighted(vec![(4, word.boxed()), (1, vec(any::<u8>(), 1..6).boxed())]);
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The same as text.
pub fn text_from(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let word = select(words).prop_map(str::to_owned);
    let noise = vec(any::<char>(), 1..4).prop_map(String::from_iter);
    let piece = Union::new_weighted(vec![(4, word.boxed()), (1, noise.boxed())]);
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// JSON of any shape, whose names and many of whose texts are the given ones.
pub fn json(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "0",
        "60",
        "1.5",
        "host",
        "true",
        "\0",
        "é",
        "x/y",
        "99999999999999999999",
    ];
    let number = Union::new(vec![
        any::<i64>().prop_map(Value::from).boxed(),
        any::<u64>().prop_map(Value::from).boxed(),
        f64::ANY.prop_map(Value::from).boxed(),
        (-2_i64..100).prop_map(Value::from).boxed(),
    ]);
    let leaf = Union::new(vec![
        Just(Value::Null).boxed(),
        any::<bool>().prop_map(Value::from).boxed(),
        number.boxed(),
        select(texts.to_vec()).prop_map(Value::from).boxed(),
        select(names).prop_map(Value::from).boxed(),
        any::<String>().prop_map(Value::from).boxed(),
    ]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let name = Union::new_weighted(vec![
            (9, select(names).prop_map(str::to_owned).boxed()),
            (1, any::<String>().boxed()),
        ]);
        let object = vec((name, inner.clone()), 0..6);
        Union::new(vec![
            vec(inner, 0..6).prop_map(Value::from).boxed(),
            object
                .prop_map(|fields| Value::Object(fields.into_iter().collect()))
                .boxed(),
        ])
    })
}

/// Something together with places where the network may have cut it; see [`cut`].
pub fn with_cuts<S: Strategy>(whole: S) -> impl Strategy<Value = (S::Value, Vec<Index>)> {
    (whole, vec(any::<Index>(), 0..8))
}

/// The pieces of something that is cut in these places. None is lost, some may be empty.
#[must_use]
pub fn cut<'a>(whole: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = places.iter().map(|at| at.index(whole.len() + 1)).collect();
    ends.push(whole.len());
    ends.sort_unstable();
    let mut start = 0;
    let part = |end| {
        let piece: Range<usize> = start..end;
        start = end;
        whole.get(piece).unwrap_or_default()
    };
    ends.into_iter().map(part).collect()
}

#[cfg(test)]
mod fuzz {
    use super::*;

    crate::fuzz! {
        fn pieces_are_the_whole((whole, places) in with_cuts(vec(any::<u8>(), 0..40))) {
            let pieces = cut(&whole, &places);
            assert_eq!(pieces.concat(), whole);
            assert_eq!(pieces.len(), places.len() + 1);
        }
    }
}
