//! Pure. Host names that stand for a port of a sandbox: `{port}-{id}.localhost`, and the same below
//! the operator's domain. Each is an origin of its own for browsers, and no way to the API.

use http::uri::Authority;

/// Below it every name is the browser's own machine.
const LOCAL: &str = "localhost";

/// What a host name that stands for a port names; each part may yet be none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) port: String,
    /// Moment and signature of an address in the form of OSEP-0011.
    pub(crate) signed: Option<(String, String)>,
}

/// What a host name is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostName {
    /// Not a port of a sandbox.
    Api,
    /// A port of a sandbox.
    Port(Named),
    /// Below a domain of sandboxes, and none.
    Nothing,
}

/// The domain below which ports have names.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    name: String,
    port: Option<u16>,
}

impl Domain {
    /// Reads `domain` or `domain:port`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let name = authority.host().to_ascii_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let is_name = name.bytes().all(is_plain) && name.split('.').all(|label| !label.is_empty());
        let is_address = name.parse::<core::net::IpAddr>().is_ok();
        let port = authority.port_u16();
        let is_whole = text.len() == name.len() || port.is_some();
        (is_name && !is_address && is_whole).then_some(Self { name, port })
    }
}

/// What the `Host` of a request names. Every other name below the operator's domain is nothing:
/// pages of a sandbox are to share no origin with the API.
pub(crate) fn read(host: &str, domain: Option<&Domain>) -> HostName {
    let Ok(authority) = host.parse::<Authority>() else {
        return HostName::Api;
    };
    let name = authority.host().to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    if let Some(label) = domain.and_then(|domain| below(name, &domain.name)) {
        return named(label).map_or(HostName::Nothing, HostName::Port);
    }
    match below(name, LOCAL) {
        Some(label) if names_port(last_label(label)) => {
            named(label).map_or(HostName::Nothing, HostName::Port)
        }
        _ => HostName::Api,
    }
}

/// The address of a port of a sandbox as a host name, for a caller who sees this server as `host`:
/// below the operator's domain, or on this machine. `None` when there is no such name.
pub(crate) fn address(id: &str, port: u16, host: &str, domain: Option<&Domain>) -> Option<String> {
    let called: Authority = host.parse().ok()?;
    let (name, at) = match domain {
        Some(domain) => (domain.name.as_str(), domain.port.or(called.port_u16())),
        None if is_local(called.host()) => (LOCAL, called.port_u16()),
        None => return None,
    };
    let at = at.map(|at| format!(":{at}")).unwrap_or_default();
    Some(format!("{port}-{id}.{name}{at}"))
}

fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    host == LOCAL
        || below(&host, LOCAL).is_some()
        || host
            .parse::<core::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn below<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    let label = name.strip_suffix(domain)?.strip_suffix('.')?;
    (!label.is_empty()).then_some(label)
}

fn last_label(labels: &str) -> &str {
    labels.rsplit('.').next().unwrap_or(labels)
}

/// Whether a label looks like a port and an id in either order, which hold five hyphens.
fn names_port(label: &str) -> bool {
    let first = label.split_once('-').map(|(first, _)| first);
    first.is_some_and(is_number) || label.matches('-').count() >= 5
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A label's parts: `{port}-{id}`, or `{id}-{port}-{moment}-{signature}`. An id has four hyphens.
fn named(label: &str) -> Option<Named> {
    if label.contains('.') {
        return None;
    }
    let parts: Vec<&str> = label.split('-').collect();
    let own = |text: &str| text.to_owned();
    match parts.as_slice() {
        [port, id @ ..] if id.len() == 5 && is_number(port) => Some(Named {
            id: id.join("-"),
            port: own(port),
            signed: None,
        }),
        [id @ .., port, moment, signature] if id.len() == 5 => Some(Named {
            id: id.join("-"),
            port: own(port),
            signed: Some((own(moment), own(signature))),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b0e7d5c-58a0-4d67-a3f8-0a1b2c3d4e5f";

    fn told(host: &str, domain: Option<&str>) -> String {
        let domain = domain.map(|domain| Domain::parse(domain).unwrap());
        match read(&host.replace("ID", ID), domain.as_ref()) {
            HostName::Api => "api".to_owned(),
            HostName::Nothing => "nothing".to_owned(),
            HostName::Port(Named { id, port, signed }) => {
                let signed = signed.map(|(moment, signature)| format!(" {moment} {signature}"));
                format!("{port} {id}{}", signed.unwrap_or_default()).replace(ID, "ID")
            }
        }
    }

    #[test]
    fn names_are_ports_or_the_api_and_never_both() {
        let mine = Some("box.example:8443");
        for (host, domain, expected) in [
            ("8080-ID.localhost", None, "8080 ID"),
            ("8080-ID.localhost:9", None, "8080 ID"),
            ("8080-ID.LOCALHOST.:9", None, "8080 ID"),
            ("8080-ID.box.example", None, "api"),
            ("8080-ID.box.example", mine, "8080 ID"),
            ("8080-ID.box.example:1", mine, "8080 ID"),
            ("8080-ID.localhost", mine, "8080 ID"),
            (
                "ID-8080-x2qxvk-0123abcda.localhost",
                None,
                "8080 ID x2qxvk 0123abcda",
            ),
            (
                "ID-8080-x2qxvk-0123abcda.box.example",
                mine,
                "8080 ID x2qxvk 0123abcda",
            ),
            ("box.example", mine, "api"),
            ("localhost:8080", mine, "api"),
            ("127.0.0.1:8080", mine, "api"),
            ("console.box.example", mine, "nothing"),
            ("a.8080-ID.box.example", mine, "nothing"),
            ("notbox.example", mine, "api"),
            ("console.localhost", None, "api"),
            ("a.8080-ID.localhost", None, "nothing"),
            ("8080-x.localhost", None, "nothing"),
            ("8080-.localhost", None, "nothing"),
            ("ID.localhost", None, "api"),
            ("ID-8080.localhost", None, "nothing"),
            ("99999-ID.localhost", None, "99999 ID"),
            ("8080-ID.localhost.evil.example", None, "api"),
            (".localhost", None, "api"),
        ] {
            assert_eq!(told(host, domain), expected, "{host} {domain:?}");
        }
    }

    #[test]
    fn addresses_are_names_where_there_are_names() {
        for (host, domain, expected) in [
            ("127.0.0.1:8080", None, Some("80-ID.localhost:8080")),
            ("[::1]:8080", None, Some("80-ID.localhost:8080")),
            ("localhost", None, Some("80-ID.localhost")),
            ("8080-x.localhost:1", None, Some("80-ID.localhost:1")),
            ("192.0.2.1:8080", None, None),
            ("server.example", None, None),
            (
                "192.0.2.1:8080",
                Some("box.example"),
                Some("80-ID.box.example:8080"),
            ),
            (
                "server.example",
                Some("Box.example"),
                Some("80-ID.box.example"),
            ),
            (
                "127.0.0.1:8080",
                Some("box.example:443"),
                Some("80-ID.box.example:443"),
            ),
        ] {
            let domain = domain.map(|domain| Domain::parse(domain).unwrap());
            let found = address("ID", 80, host, domain.as_ref());
            assert_eq!(found.as_deref(), expected, "{host} {domain:?}");
        }
    }

    #[test]
    fn domains_are_plain_names() {
        for (text, good) in [
            ("box.example", true),
            ("box.example:8443", true),
            ("localhost", true),
            ("", false),
            ("box.example:", false),
            ("box.example/", false),
            ("http://box.example", false),
            ("*.box.example", false),
            (".example", false),
            ("example.", false),
            ("u@box.example", false),
            ("192.0.2.1", false),
            ("[::1]", false),
        ] {
            assert_eq!(Domain::parse(text).is_some(), good, "{text}");
        }
    }
}
