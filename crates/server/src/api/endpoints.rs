//! Where a port of a sandbox is reached: on this very server.

use std::collections::BTreeMap;

use barchan_daemon::payload::Payload;
use barchan_wire::egress::EGRESS_PORT;
use barchan_wire::lifecycle::error::{Faults, ValidationBody};
use barchan_wire::lifecycle::{Endpoint, code, lax};
use barchan_wire::secret::Secret;
use http::{Request, Response};
use serde_json::json;

use super::Api;
use super::errors::Refusal;
use super::links::{Port, Purpose};
use super::proxy::{self, LINKS};
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::sandboxes::id;
use crate::lifecycle::LifecycleError;

/// The headers of tokens as clients are told them.
const TOKEN_HEADER: &str = "X-EXECD-ACCESS-TOKEN";
const EGRESS_HEADER: &str = "OPENSANDBOX-EGRESS-AUTH";

impl Api {
    /// The address is the server's own whether the caller asks for its proxy or not: one
    /// connection then carries everything, and nothing inside a sandbox listens on the host.
    pub(super) fn endpoint(
        &self,
        place: &Place,
        request: &Request<Payload>,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let port = read_port(&place.port, &mut faults);
        let through_server = query.boolean("use_server_proxy", &mut faults);
        let expires = query.integer("expires", 0, i64::MAX, &mut faults);
        let port = faults.or(port)?.unwrap_or_default();
        let port = in_range(port)?;
        self.offer_port(port)?;
        if expires.is_some() && through_server == Some(true) {
            let message = "use_server_proxy and expires exclude each other";
            return Err(Refusal::parameter(message));
        }
        let until = expires.map(|until| self.until(until)).transpose()?;
        let by_host = by_host(query.last("form"))?;
        let id = id(place)?;
        self.lifecycle.reachable(&id).map_err(no_endpoint)?;
        let base = if place.is_v1 { "/v1" } else { "" };
        let host = self.host_of(request);
        if until.is_some() && port == EGRESS_PORT {
            let message = format!(
                "port {EGRESS_PORT} is opened by its token alone: leave expires out, and send the \
                 headers that come with the endpoint"
            );
            return Err(Refusal::parameter(message));
        }
        if let Some(until) = until {
            let port = Port { id: &id, port };
            let signature = self.links.sign(Purpose::Link, port, until);
            let endpoint = match self.own_host_of(port, &host, by_host)? {
                Some(own) => format!("{own}{LINKS}{signature}"),
                None => format!(
                    "{host}{base}/sandboxes/{id}/signed/{}/{signature}",
                    port.port
                ),
            };
            let headers = None;
            return Ok(reply::json(200, &Endpoint { endpoint, headers }));
        }
        let endpoint = match by_host {
            Some(true) => self.own_host_of(Port { id: &id, port }, &host, by_host)?,
            _ => None,
        };
        let endpoint =
            endpoint.unwrap_or_else(|| format!("{host}{base}/sandboxes/{id}/proxy/{port}"));
        let (name, token) = match port {
            EGRESS_PORT => (EGRESS_HEADER, self.gate.egress_token(&id)),
            _ => (TOKEN_HEADER, self.gate.token(&id)),
        };
        let headers = Some(BTreeMap::from([(name.to_owned(), Secret::new(token))]));
        Ok(reply::json(200, &Endpoint { endpoint, headers }))
    }

    /// A moment that is yet to come.
    fn until(&self, seconds: i64) -> Result<u64, Refusal> {
        let until = u64::try_from(seconds).unwrap_or_default();
        if until > self.seconds() {
            return Ok(until);
        }
        let message =
            format!("expires must lie after now, in seconds since 1970: {seconds} does not");
        Err(Refusal::parameter(message))
    }

    /// The host of its own that a port has, unless the caller asks for the other form or there is
    /// no such host where it is.
    fn own_host_of(
        &self,
        Port { id, port }: Port<'_>,
        host: &str,
        by_host: Option<bool>,
    ) -> Result<Option<String>, Refusal> {
        if by_host == Some(false) {
            return Ok(None);
        }
        let domain = self.proxy.domain.as_ref();
        match proxy::host_address(id.as_str(), port, host, domain) {
            None if by_host == Some(true) => Err(Refusal::parameter(
                "ports have host names of their own below `server.domain`, which is not set, or on \
                 the machine that calls this server by `localhost`",
            )),
            own => Ok(own),
        }
    }
}

/// Whether the caller wants a host of its own or a path of this one.
fn by_host(form: Option<&str>) -> Result<Option<bool>, Refusal> {
    match form {
        None => Ok(None),
        Some("host") => Ok(Some(true)),
        Some("path") => Ok(Some(false)),
        Some(_) => Err(Refusal::parameter("form is `host` or `path`")),
    }
}

/// A sandbox that ended has no endpoints: 404, the status under which clients of this route read
/// code and message.
fn no_endpoint(error: LifecycleError) -> Refusal {
    match error {
        LifecycleError::NotRunning { .. } => {
            Refusal::new(404, code::NOT_RUNNING, error.to_string())
        }
        other => other.into(),
    }
}

/// A port as a number; `08080` is 8080.
///
/// # Errors
/// As a malformed request when it is no number, as a bad port when no port has it.
pub(super) fn port(text: &str) -> Result<u16, Refusal> {
    let mut faults = Faults::default();
    let number = read_port(text, &mut faults);
    let number: Result<_, ValidationBody> = faults.or(number);
    in_range(number?.unwrap_or_default())
}

fn read_port(text: &str, faults: &mut Faults) -> Option<i64> {
    let value = json!(text);
    let loc = [json!("path"), json!("port")];
    lax::integer(&value)
        .map_err(|(kind, msg)| faults.add(kind, &loc, msg, &value))
        .ok()
}

fn in_range(number: i64) -> Result<u16, Refusal> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| {
            Refusal::new(
                400,
                code::INVALID_PORT,
                format!("{number} is no port: use 1 to 65535"),
            )
        })
}
