//! Pure. Names of operations and routes, for figures, spans and logs.

use std::sync::LazyLock;

use super::{Operation, Place, ROUTES};

/// Requests to a sandbox's daemon, to its other ports, and to what is no route.
pub(in crate::api) const DAEMON: &str = "daemon";
pub(in crate::api) const PORT: &str = "port";
pub(in crate::api) const OTHER: &str = "other";

/// What a route is called.
struct Named {
    /// What is done.
    operation: String,
    /// The path with its variable parts in braces, without and with `/v1`.
    bare: String,
    v1: String,
}

/// By the number of the route.
static NAMED: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let named = super::all().map(|told| {
        let bare = told.path.strip_prefix("/v1").unwrap_or(&told.path);
        Named {
            operation: told.operation.name(),
            bare: bare.to_owned(),
            v1: told.path,
        }
    });
    named.collect()
});

/// What the route of a place is called, and its path.
pub(in crate::api) fn named(place: &Place) -> Option<(&'static str, &'static str)> {
    let named = NAMED.get(place.route)?;
    let path = if place.is_v1 { &named.v1 } else { &named.bare };
    Some((&named.operation, path))
}

/// Every name there is.
pub(in crate::api) fn all() -> Vec<String> {
    let routes = ROUTES.iter().map(|(.., operation)| operation.name());
    let others = [DAEMON, PORT, OTHER].map(str::to_owned);
    let mut names: Vec<String> = routes.chain(others).collect();
    names.sort();
    names.dedup();
    names
}

impl Operation {
    /// Its name: `CreatePool` is `create_pool`.
    fn name(self) -> String {
        snake(&format!("{self:?}"))
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_plain_names() {
        let names = all();
        for name in [
            "create",
            "create_pool",
            "network_policy",
            "metrics",
            DAEMON,
            OTHER,
        ] {
            assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
        }
        let plain = |name: &String| name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        assert!(names.iter().all(plain), "{names:?}");
    }
}
