//! Pure. Which sandbox, which port, and what lies behind them, bytes untouched.

use bytes::Bytes;
use http::Uri;
use http::uri::{InvalidUri, PathAndQuery};

use crate::api::routes::decoded;

/// The parts of a proxied address: `[/v1]/sandboxes/{id}/proxy/{port}[/rest][?query]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    path: String,
    id: (usize, usize),
    port: (usize, usize),
    query: Option<String>,
}

impl Target {
    /// Reads an address; `None` when it is another route.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let base = ["/v1/sandboxes/", "/sandboxes/"]
            .into_iter()
            .find(|base| path.starts_with(base))?
            .len();
        let part = |start: usize| {
            let rest = path.get(start..)?;
            let end = rest.find('/').map_or(path.len(), |at| start + at);
            (end > start).then_some((start, end))
        };
        let id = part(base)?;
        let proxy = "/proxy/";
        path.get(id.1..)?.strip_prefix(proxy)?;
        let port = part(id.1 + proxy.len())?;
        let query = uri.query().map(str::to_owned);
        Some(Self {
            path: path.to_owned(),
            id,
            port,
            query,
        })
    }

    /// The id, as decoded text; it may be no id at all.
    pub(super) fn id(&self) -> String {
        decoded(self.slice(self.id))
    }

    /// The port, as decoded text; it may be no port at all.
    pub(super) fn port(&self) -> String {
        decoded(self.slice(self.port))
    }

    /// Everything up to the port: what a root-relative address inside is to be put behind.
    pub(super) fn base(&self) -> &str {
        self.slice((0, self.port.1))
    }

    /// The address that the program inside is called at: what follows the port, to the byte.
    pub(super) fn inside(&self, prefix: &str) -> Result<Uri, InvalidUri> {
        let rest = self.slice((self.port.1, self.path.len()));
        let rest = if rest.is_empty() { "/" } else { rest };
        let mut whole = String::with_capacity(prefix.len() + rest.len() + 64);
        whole.push_str(prefix);
        whole.push_str(rest);
        if let Some(query) = &self.query {
            whole.push('?');
            whole.push_str(query);
        }
        PathAndQuery::from_maybe_shared(Bytes::from(whole)).map(Uri::from)
    }

    fn slice(&self, (start, end): (usize, usize)) -> &str {
        self.path.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_apart_and_keep_their_bytes() {
        for (uri, expected) in [
            (
                "/v1/sandboxes/a/proxy/80",
                Some("a 80 /v1/sandboxes/a/proxy/80 /P/"),
            ),
            (
                "/sandboxes/a/proxy/80/",
                Some("a 80 /sandboxes/a/proxy/80 /P/"),
            ),
            (
                "/sandboxes/a/proxy/80?x=1",
                Some("a 80 /sandboxes/a/proxy/80 /P/?x=1"),
            ),
            (
                "/sandboxes/a/proxy/80/?",
                Some("a 80 /sandboxes/a/proxy/80 /P/?"),
            ),
            (
                "/sandboxes/a/proxy/80/b%2Fc//d/../e;f?q=%20&r=a+b",
                Some("a 80 /sandboxes/a/proxy/80 /P/b%2Fc//d/../e;f?q=%20&r=a+b"),
            ),
            (
                "/sandboxes/%61/proxy/%38",
                Some("a 8 /sandboxes/%61/proxy/%38 /P/"),
            ),
            (
                "/sandboxes/a/proxy/abc/x",
                Some("a abc /sandboxes/a/proxy/abc /P/x"),
            ),
            (
                "http://elsewhere/sandboxes/a/proxy/80/x",
                Some("a 80 /sandboxes/a/proxy/80 /P/x"),
            ),
            ("/sandboxes/a/b/proxy/80", None),
            ("/sandboxes//proxy/80", None),
            ("/sandboxes/a/proxy/", None),
            ("/sandboxes/a/proxy", None),
            ("/sandboxes/a/Proxy/80", None),
            ("//sandboxes/a/proxy/80", None),
            ("/v1/v1/sandboxes/a/proxy/80", None),
            ("/sandboxes/a", None),
        ] {
            let target = Target::of(&uri.parse().unwrap());
            let told = target.map(|it| {
                let inside = it.inside("/P").map(|uri| uri.to_string());
                format!(
                    "{} {} {} {}",
                    it.id(),
                    it.port(),
                    it.base(),
                    inside.unwrap_or_default()
                )
            });
            assert_eq!(told.as_deref(), expected, "{uri}");
        }
    }
}
