//! Pure. Where a server is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::ClientError;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Host and port, as `host:port` with brackets around an IPv6 address.
    Tcp(String),
    /// A Unix socket on this machine.
    Unix(PathBuf),
}

/// The port of a server whose address names none.
const PORT_DEFAULT: u16 = 8080;

impl Target {
    /// What stands in the `Host` header.
    #[must_use]
    pub fn authority(&self) -> &str {
        match self {
            Self::Tcp(authority) => authority,
            Self::Unix(_) => "localhost",
        }
    }
}

impl FromStr for Target {
    type Err = ClientError;

    /// Accepts `http://host[:port]`, `host[:port]`, `unix:/path` and a path that begins with `/`.
    fn from_str(text: &str) -> Result<Self, ClientError> {
        let bad = |why: &str| ClientError::Address(format!("the server address {text:?} {why}"));
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err(bad("needs an absolute path after unix:")),
            };
        }
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        if text.starts_with("https://") {
            return Err(bad(
                "asks for TLS, which this client does not speak; use a local relay",
            ));
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let rest = rest
            .strip_suffix("/v1")
            .unwrap_or(rest)
            .trim_end_matches('/');
        let rest = rest.strip_suffix("/v1").unwrap_or(rest);
        let authority: http::uri::Authority = rest
            .parse()
            .map_err(|_| bad("is neither host:port nor unix:/path"))?;
        if authority.as_str().contains('@') {
            return Err(bad("carries credentials; pass the API key apart from it"));
        }
        let port = authority.port_u16().unwrap_or(PORT_DEFAULT);
        Ok(Self::Tcp(format!("{}:{port}", authority.host())))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => write!(out, "http://{authority}"),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, expected) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("http://example.org", "http://example.org:8080"),
            ("example.org:80/", "http://example.org:80"),
            ("http://[::1]:8080/v1", "http://[::1]:8080"),
            ("http://[::1]:8080/v1/", "http://[::1]:8080"),
            ("unix:/run/b.sock", "unix:/run/b.sock"),
            ("unix:///run/b.sock", "unix:/run/b.sock"),
            ("/run/b.sock", "unix:/run/b.sock"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        for (text, reason) in [
            ("https://example.org", "TLS"),
            ("unix:relative", "absolute"),
            ("http://user:pass@host:1", "credentials"),
            ("http://a b", "neither"),
            ("", "neither"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
