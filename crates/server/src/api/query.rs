//! Pure. What is asked for after the question mark.

use std::collections::BTreeMap;

use barchan_wire::lifecycle::error::Faults;
use barchan_wire::lifecycle::{code, lax};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::errors::Refusal;
use crate::lifecycle::Filter;

/// Most items of a page, and how many there are when nobody says.
const PAGE_SIZE_MAX: i64 = 200;
const PAGE_SIZE_DEFAULT: i64 = 20;

/// The parameters of a query, in their order, decoded once.
pub(super) struct Query(Vec<(String, String)>);

/// What a list is to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) filter: Filter,
    pub(super) page: u64,
    pub(super) page_size: u64,
}

impl Query {
    pub(super) fn read(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        };
        Self(pairs.map(split).collect())
    }

    /// The last parameter of a name.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rfind(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// All parameters of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Which page is asked for, and of what size; bad numbers are noted.
    pub(super) fn page(&self, faults: &mut Faults) -> (u64, u64) {
        let page = self.integer("page", 1, i64::MAX, faults).unwrap_or(1);
        let size = self.integer("pageSize", 1, PAGE_SIZE_MAX, faults);
        let size = size.unwrap_or(PAGE_SIZE_DEFAULT);
        (page.unsigned_abs(), size.unsigned_abs())
    }

    /// A truth value; a bad one is noted.
    pub(super) fn boolean(&self, name: &str, faults: &mut Faults) -> Option<bool> {
        let value = json!(self.last(name)?);
        noted(name, &value, lax::boolean(&value), faults)
    }

    /// A whole number within limits; a bad one is noted.
    pub(super) fn integer(
        &self,
        name: &str,
        min: i64,
        max: i64,
        faults: &mut Faults,
    ) -> Option<i64> {
        let value = json!(self.last(name)?);
        let number = noted(name, &value, lax::integer(&value), faults)?;
        if (min..=max).contains(&number) {
            return Some(number);
        }
        let (kind, msg, ctx) = if number < min {
            (
                "greater_than_equal",
                format!("must be at least {min}"),
                json!({"ge": min}),
            )
        } else {
            (
                "less_than_equal",
                format!("must be at most {max}"),
                json!({"le": max}),
            )
        };
        faults.add_with(kind, &[json!("query"), json!(name)], msg, &value, Some(ctx));
        None
    }
}

impl ListQuery {
    /// Reads what a list is to show.
    ///
    /// # Errors
    /// Bad numbers as a malformed request, then a bad metadata filter as a bad parameter.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Refusal> {
        let query = Query::read(query);
        let mut faults = Faults::default();
        let (page, page_size) = query.page(&mut faults);
        let states = query.all("state").map(str::to_ascii_lowercase).collect();
        let (page, page_size) = faults.or((page, page_size))?;
        let metadata = match query.last("metadata") {
            Some(text) => labels(text)?,
            None => BTreeMap::new(),
        };
        Ok(Self {
            filter: Filter { states, metadata },
            page,
            page_size,
        })
    }
}

/// A metadata filter is a query text of its own: clients encode each value, and then the whole.
pub(super) fn labels(text: &str) -> Result<BTreeMap<String, String>, Refusal> {
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut found = BTreeMap::new();
    for pair in text.split('&') {
        let Some((key, value)) = pair.split_once('=') else {
            let message = "the metadata filter must be key=value pairs joined by '&'";
            return Err(Refusal::new(400, code::INVALID_METADATA_FORMAT, message));
        };
        found.insert(decode(key), decode(value));
    }
    Ok(found)
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

fn noted<T>(
    name: &str,
    value: &Value,
    read: Result<T, (&'static str, &'static str)>,
    faults: &mut Faults,
) -> Option<T> {
    let loc = [json!("query"), json!(name)];
    read.map_err(|(kind, msg)| faults.add(kind, &loc, msg, value))
        .ok()
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn lists_are_asked_for_in_many_ways() {
        let all = ListQuery::read(None).unwrap();
        assert_eq!((all.page, all.page_size), (1, 20));
        let some = "state=RUNNING&state=paused&page=2&pageSize=200&unknown=1";
        let some = ListQuery::read(Some(some)).unwrap();
        assert_eq!(some.filter.states, ["running", "paused"]);
        assert_eq!((some.page, some.page_size), (2, 200));
        let empty = ListQuery::read(Some("state=")).unwrap();
        assert_eq!(empty.filter.states, [""], "an empty state matches nothing");
    }

    #[test]
    fn metadata_is_decoded_twice_and_strict() {
        for (query, expected) in [
            (
                "metadata=a%3D1%26b%3D",
                Some(labels(&[("a", "1"), ("b", "")])),
            ),
            ("metadata=a%3Dx%252520y", Some(labels(&[("a", "x%20y")]))),
            ("metadata=a%3Dx%2520y", Some(labels(&[("a", "x y")]))),
            ("metadata=%3Db", Some(labels(&[("", "b")]))),
            ("metadata=a%3Db%3Dc", Some(labels(&[("a", "b=c")]))),
            ("metadata=a%3Db%3Bc%3Dd", Some(labels(&[("a", "b;c=d")]))),
            ("metadata=", Some(labels(&[]))),
            ("metadata=a", None),
            ("metadata=a%3D1%26", None),
            ("metadata=a%3D1%26%26b%3D2", None),
        ] {
            let read = ListQuery::read(Some(query));
            if expected.is_none() {
                assert_eq!(
                    read.as_ref().unwrap_err().code(),
                    code::INVALID_METADATA_FORMAT
                );
            }
            assert_eq!(read.ok().map(|it| it.filter.metadata), expected, "{query}");
        }
    }

    #[test]
    fn bad_numbers_are_malformed_requests() {
        for query in [
            "page=0",
            "page=x",
            "page=",
            "page=1_0",
            "page=1.5",
            "page=100000000000000000000",
            "pageSize=201",
            "pageSize=0",
            "page=-1&metadata=bad",
        ] {
            assert_eq!(
                ListQuery::read(Some(query)).unwrap_err().status(),
                422,
                "{query}"
            );
        }
    }
}
