//! Pure. Which sandbox, which port, and what lies behind them, bytes untouched.

use barchan_wire::id::SandboxId;
use bytes::Bytes;
use http::Uri;
use http::uri::{InvalidUri, PathAndQuery};

use super::hosts::Named;
use crate::api::routes::decoded;

/// Below it, in a host of its own, signed addresses are: `/.barchan/{signature}[/rest]`.
pub(crate) const LINKS: &str = "/.barchan/";

/// How a port is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// `[/v1]/sandboxes/{id}/proxy/{port}[/rest]`
    Path,
    /// `[/v1]/sandboxes/{id}/signed/{port}/{signature}[/rest]`, or as OSEP-0011 has it,
    /// `/{id}/{port}/{moment}/{signature}[/rest]`.
    Signed,
    /// A host of its own, of which all paths but those below `/.barchan/` are the program's.
    Host,
}

/// A signature as an address holds it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Signature {
    Own(String),
    /// Moment and signature as in OSEP-0011.
    Osep(String, String),
}

/// The parts of a proxied address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    form: Form,
    path: String,
    id: String,
    port: String,
    /// How much of the path is ours.
    base: usize,
    query: Option<String>,
    signature: Option<Signature>,
}

impl Target {
    /// Reads an address; `None` when it is another route.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let base = ["/v1/sandboxes/", "/sandboxes/"]
            .into_iter()
            .find(|base| path.starts_with(base))?
            .len();
        let id = part(path, base)?;
        let (form, word) = [(Form::Path, "/proxy/"), (Form::Signed, "/signed/")]
            .into_iter()
            .find(|(_, word)| path.get(id.1..).is_some_and(|rest| rest.starts_with(word)))?;
        let port = part(path, id.1 + word.len())?;
        let signed = match form {
            Form::Signed => Some(part(path, port.1 + 1)?),
            _ => None,
        };
        Some(Self {
            form,
            id: decoded(slice(path, id)),
            port: decoded(slice(path, port)),
            base: signed.unwrap_or(port).1,
            signature: signed.map(|signed| Signature::Own(slice(path, signed).to_owned())),
            query: uri.query().map(str::to_owned),
            path: path.to_owned(),
        })
    }

    /// Reads an address in the form of OSEP-0011; `None` when it is another route.
    pub(crate) fn of_osep(uri: &Uri) -> Option<Self> {
        let path = uri.path();
        let id = part(path, 1)?;
        let port = part(path, id.1 + 1)?;
        let moment = part(path, port.1 + 1)?;
        let signature = part(path, moment.1 + 1)?;
        let own = |at| slice(path, at).to_owned();
        own(id).parse::<SandboxId>().ok()?;
        Some(Self {
            form: Form::Signed,
            id: own(id),
            port: own(port),
            base: signature.1,
            signature: Some(Signature::Osep(own(moment), own(signature))),
            query: uri.query().map(str::to_owned),
            path: path.to_owned(),
        })
    }

    /// Reads an address in a host of its own.
    pub(crate) fn of_host(named: Named, uri: &Uri) -> Self {
        let path = match uri.path() {
            "" => "/",
            path => path,
        };
        let link = path
            .strip_prefix(LINKS)
            .and_then(|_| part(path, LINKS.len()));
        let by_name = named.signed.map(|(moment, it)| Signature::Osep(moment, it));
        let by_path = link.map(|link| Signature::Own(slice(path, link).to_owned()));
        Self {
            form: Form::Host,
            id: named.id,
            port: named.port,
            base: link.map_or(0, |link| link.1),
            signature: by_path.or(by_name),
            query: uri.query().map(str::to_owned),
            path: path.to_owned(),
        }
    }

    /// The id as text; it may be no id at all.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The port as text; it may be no port at all.
    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    pub(super) fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// What a root-relative address inside is to be put behind.
    pub(super) fn base(&self) -> &str {
        slice(&self.path, (0, self.base))
    }

    /// What follows our part of the path, as it was sent.
    pub(crate) fn rest(&self) -> &str {
        slice(&self.path, (self.base, self.path.len()))
    }

    /// The query, as it was sent.
    pub(crate) fn query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// The address that the program inside is called at: what follows our part, to the byte.
    pub(super) fn inside(&self, prefix: &str) -> Result<Uri, InvalidUri> {
        let whole = format!("{prefix}{}", self.program_path());
        PathAndQuery::from_maybe_shared(Bytes::from(whole)).map(Uri::from)
    }

    /// Path and query as the program inside has them.
    fn program_path(&self) -> String {
        let rest = self.rest();
        let rest = if rest.is_empty() { "/" } else { rest };
        let query = self.query.as_ref().map(|query| format!("?{query}"));
        format!("{rest}{}", query.unwrap_or_default())
    }

    /// The same place on the same host without the signature.
    pub(super) fn without_signature(&self) -> String {
        let place = self.program_path();
        // Two slashes, or what browsers take for them, would begin the name of another host.
        match place.as_bytes() {
            [_, b'/' | b'\\', ..] => format!("/.{place}"),
            _ => place,
        }
    }
}

/// Where the part of a path ends that begins here; `None` when it is empty.
fn part(path: &str, start: usize) -> Option<(usize, usize)> {
    let rest = path.get(start..)?;
    let end = rest.find('/').map_or(path.len(), |at| start + at);
    (end > start).then_some((start, end))
}

fn slice(path: &str, (start, end): (usize, usize)) -> &str {
    path.get(start..end).unwrap_or_default()
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("[signature]")
    }
}

#[cfg(test)]
mod fuzz;

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

    const ID: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

    fn told(target: Option<Target>) -> Option<String> {
        let it = target?;
        let signature = match it.signature() {
            Some(Signature::Own(signature)) => signature.clone(),
            Some(Signature::Osep(moment, signature)) => format!("{moment}+{signature}"),
            None => "-".to_owned(),
        };
        let inside = it.inside("").unwrap();
        let text = format!(
            "{} {} {signature} {} {inside}",
            it.id(),
            it.port(),
            it.base()
        );
        Some(text.replace(ID, "ID"))
    }

    #[test]
    fn signed_addresses_come_apart() {
        for (uri, expected) in [
            (
                "/v1/sandboxes/ID/signed/80/m-k-s/a?b",
                Some("ID 80 m-k-s /v1/sandboxes/ID/signed/80/m-k-s /a?b"),
            ),
            (
                "/sandboxes/ID/signed/80/m-k-s",
                Some("ID 80 m-k-s /sandboxes/ID/signed/80/m-k-s /"),
            ),
            ("/sandboxes/ID/signed/80", None),
            ("/sandboxes/ID/signed/80/", None),
            ("/sandboxes/ID/signed//m", None),
        ] {
            let found = told(Target::of(&uri.replace("ID", ID).parse().unwrap()));
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
        for (uri, expected) in [
            ("/ID/80/m/s/a?b", Some("ID 80 m+s /ID/80/m/s /a?b")),
            ("/ID/80/m/s", Some("ID 80 m+s /ID/80/m/s /")),
            ("/ID/80/m", None),
            ("/ID/80/m/", None),
            ("/v1/ID/80/m/s", None),
            ("/sandboxes/a/b/c", None),
        ] {
            let found = told(Target::of_osep(&uri.replace("ID", ID).parse().unwrap()));
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn in_a_host_of_its_own_all_paths_but_links_are_the_programs() {
        for (uri, expected, plain) in [
            ("/", "ID 80 -  /", "/"),
            ("http://x", "ID 80 -  /", "/"),
            (
                "/v1/sandboxes?x",
                "ID 80 -  /v1/sandboxes?x",
                "/v1/sandboxes?x",
            ),
            ("/.barchan/s", "ID 80 s /.barchan/s /", "/"),
            (
                "/.barchan/s/a//b?c",
                "ID 80 s /.barchan/s /a//b?c",
                "/a//b?c",
            ),
            (
                "/.barchan/s//evil.x",
                "ID 80 s /.barchan/s //evil.x",
                "/.//evil.x",
            ),
            (
                "/.barchan/s/\\evil.x",
                "ID 80 s /.barchan/s /\\evil.x",
                "/./\\evil.x",
            ),
            ("/.barchan/", "ID 80 -  /.barchan/", "/.barchan/"),
            ("/.barchan", "ID 80 -  /.barchan", "/.barchan"),
            ("/a/.barchan/s", "ID 80 -  /a/.barchan/s", "/a/.barchan/s"),
        ] {
            let named = Named {
                id: ID.to_owned(),
                port: "80".to_owned(),
                signed: None,
            };
            let target = Target::of_host(named, &uri.parse().unwrap());
            assert_eq!(target.without_signature(), plain, "{uri}");
            assert_eq!(told(Some(target)).as_deref(), Some(expected), "{uri}");
        }
    }
}
