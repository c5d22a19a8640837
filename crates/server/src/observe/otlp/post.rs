//! One request to the collector, bounded in time and in what is read of its answer.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use barchan_wire::secret::Secret;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::tls::{Stream, Tls};

/// Longest time for the collector to take something and answer.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Largest head and body of its answer, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The ports where the address names none.
const PORT_DEFAULT: u16 = 80;
const TLS_PORT_DEFAULT: u16 = 443;

/// Where a collector is.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// There where the address begins with `https`.
    tls: Option<Tls>,
    authority: Authority,
    base: String,
    headers: HeaderMap,
}

/// Why an address or a header of a collector cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadEndpoint {
    /// The address is none.
    Address,
    /// It is reached by TLS, and the file of authorities does not hold any.
    CaFile,
    /// It is reached by TLS, and no authority is known at all.
    NobodyKnown,
    /// A header is none.
    Header,
}

impl BadEndpoint {
    /// What to do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Address => {
                "nothing is sent: write http://host:port or https://host:port, with a path if the \
                 collector has one"
            }
            Self::CaFile => {
                "name a file that this server may read, with one or more certificates as PEM"
            }
            Self::NobodyKnown => {
                "nothing is sent: this host knows no certificate authorities; install them \
                 (package ca-certificates), or name the collector's with observe.otlp_ca_file"
            }
            Self::Header => "write each header as name=value, or a file or variable with that",
        }
    }
}

/// Why the collector did not take something.
#[derive(Debug)]
pub(super) struct Failure {
    /// Whether it may take it the next time.
    pub(super) may_pass: bool,
    why: String,
}

impl Endpoint {
    /// Reads an address, and headers as `name=value`. Behind `https` stands whom an authority of
    /// this host or of `ca_file` vouches for.
    pub(crate) fn parse<'a>(
        address: &str,
        headers: impl IntoIterator<Item = &'a Secret>,
        ca_file: Option<&Path>,
    ) -> Result<Self, BadEndpoint> {
        let uri: Uri = address.trim().parse().map_err(|_| BadEndpoint::Address)?;
        let authority = uri.authority().filter(|it| !it.as_str().contains('@'));
        let (Some(authority), Some(scheme), None) = (authority, uri.scheme(), uri.query()) else {
            return Err(BadEndpoint::Address);
        };
        let is_secure = *scheme == Scheme::HTTPS;
        if !is_secure && *scheme != Scheme::HTTP || authority.host().is_empty() {
            return Err(BadEndpoint::Address);
        }
        let mut endpoint = Self {
            tls: is_secure.then(|| Tls::new(ca_file)).transpose()?,
            authority: authority.clone(),
            base: uri.path().trim_end_matches('/').to_owned(),
            headers: HeaderMap::new(),
        };
        for header in headers {
            let (name, value) = header.reveal().split_once('=').ok_or(BadEndpoint::Header)?;
            let name: HeaderName = name.trim().parse().map_err(|_| BadEndpoint::Header)?;
            let value = HeaderValue::from_str(value.trim()).map_err(|_| BadEndpoint::Header)?;
            endpoint.headers.append(name, value);
        }
        Ok(endpoint)
    }

    /// Sends something, and returns what the collector answers to it.
    pub(super) async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let sent = tokio::time::timeout(ANSWER_WAIT, self.exchange(path, body)).await;
        sent.unwrap_or_else(|_| {
            let seconds = ANSWER_WAIT.as_secs();
            Err(Failure {
                // It may have been taken all the same, and a second time would count twice.
                may_pass: false,
                why: format!("the collector did not answer within {seconds} s"),
            })
        })
    }

    async fn exchange(&self, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let host = self.authority.host().trim_matches(['[', ']']);
        let usual = match self.tls {
            Some(_) => TLS_PORT_DEFAULT,
            None => PORT_DEFAULT,
        };
        let port = self.authority.port_u16().unwrap_or(usual);
        let passing = |error: &dyn fmt::Display| Failure {
            may_pass: true,
            why: format!("the collector cannot be reached: {error}"),
        };
        let stream = TcpStream::connect((host, port))
            .await
            .map_err(|error| passing(&error))?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => tls.greet(host, stream).await.map_err(|error| Failure {
                // Who is not who it is called will not be the next time either.
                may_pass: !matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::InvalidInput
                ),
                why: format!("no TLS with the collector: {error}"),
            })?,
        };
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| passing(&error))?;
        let request = self.request(path, body)?;
        let answer = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| passing(&error))?;
            read(response).await
        };
        let (mut answer, mut connection) = (pin!(answer), pin!(connection));
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // What it said before it closed is in the answer's hands already.
            _ = &mut connection => answer.await,
        }
    }

    fn request(&self, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, Failure> {
        let wrong = |why: String| Failure {
            may_pass: false,
            why,
        };
        let place = format!("{}{path}", self.base);
        let place: PathAndQuery = place
            .parse()
            .map_err(|_| wrong(format!("no path: {place}")))?;
        let mut request = Request::post(Uri::from(place))
            .body(Full::new(body))
            .map_err(|error| wrong(error.to_string()))?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(self.authority.as_str());
        headers.insert(HOST, host.map_err(|error| wrong(error.to_string()))?);
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("barchan/", env!("CARGO_PKG_VERSION"))),
        );
        headers.extend(self.headers.clone());
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        Ok(request)
    }
}

/// Reads an answer, no more of it than is fit for one.
// BOUNDARY: collector → host. Test: a_collector_that_lies_costs_spans_and_nothing_else
async fn read(response: Response<Incoming>) -> Result<Bytes, Failure> {
    let (head, mut body) = response.into_parts();
    if !head.status.is_success() {
        let status = head.status.as_u16();
        return Err(Failure {
            may_pass: matches!(status, 429 | 502 | 503 | 504),
            why: format!("the collector answered {status}"),
        });
    }
    let mut answer = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // It was taken; what it says beyond that only counts what was refused.
        let Ok(frame) = frame else { break };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if answer.len() + data.len() > BODY_BYTES_MAX {
            break;
        }
        answer.extend_from_slice(data);
    }
    Ok(answer.freeze())
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)
    }
}

/// Its headers may hold keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.tls.as_ref().map_or("http", |_| "https");
        write!(out, "Endpoint({scheme}://{}{})", self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    /// A file with a certificate of an authority, whatever this host has.
    fn authority() -> NamedTempFile {
        let names = ["collector".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(made.cert.pem().as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_file_of_authorities_that_holds_none_is_refused() {
        let (empty, good) = (NamedTempFile::new().unwrap(), authority());
        let mut cut = NamedTempFile::new().unwrap();
        cut.write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        for (path, is_good) in [
            (good.path(), true),
            (empty.path(), false),
            (cut.path(), false),
            (Path::new("/nowhere/ca.pem"), false),
        ] {
            let read = Endpoint::parse("https://c", [], Some(path));
            let expected = (!is_good).then_some(BadEndpoint::CaFile);
            assert_eq!(read.err(), expected, "{}", path.display());
            // What nobody reads need not be good.
            assert!(Endpoint::parse("http://c", [], Some(path)).is_ok());
        }
    }

    #[test]
    fn addresses_and_headers_of_collectors() {
        let own = authority();
        for (address, expected) in [
            (
                "http://127.0.0.1:4318",
                Ok("Endpoint(http://127.0.0.1:4318)"),
            ),
            (
                "http://collector/a/b/",
                Ok("Endpoint(http://collector/a/b)"),
            ),
            ("http://[::1]:4318/", Ok("Endpoint(http://[::1]:4318)")),
            (
                "https://collector:4318/a",
                Ok("Endpoint(https://collector:4318/a)"),
            ),
            ("https://user:word@collector", Err(BadEndpoint::Address)),
            ("grpc://collector:4317", Err(BadEndpoint::Address)),
            ("collector:4318", Err(BadEndpoint::Address)),
            ("http://user:word@collector", Err(BadEndpoint::Address)),
            ("http://collector/?key=1", Err(BadEndpoint::Address)),
            ("", Err(BadEndpoint::Address)),
        ] {
            let read = Endpoint::parse(address, [], Some(own.path())).map(|it| format!("{it:?}"));
            assert_eq!(read.as_deref().map_err(|it| *it), expected, "{address}");
        }
        for (header, is_good) in [
            ("authorization=Bearer a=b", true),
            ("X-Key = v", true),
            ("no value", false),
            ("a b=c", false),
            ("a=b\nc", false),
        ] {
            let headers = [Secret::new(header)];
            let read = Endpoint::parse("http://c", &headers, None);
            assert_eq!(read.is_ok(), is_good, "{header}");
            assert!(!format!("{read:?}").contains("Bearer"));
        }
    }
}
