//! Where a port of a sandbox is reached: on this very server.

use std::collections::BTreeMap;

use barchan_wire::lifecycle::error::{Faults, ValidationBody};
use barchan_wire::lifecycle::{Endpoint, code, lax};
use barchan_wire::secret::Secret;
use http::{Request, Response};
use hyper::body::Incoming;
use serde_json::json;

use super::Api;
use super::errors::Refusal;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::sandboxes::id;
use crate::lifecycle::LifecycleError;

/// The token's header as clients are told it.
const TOKEN_HEADER: &str = "X-EXECD-ACCESS-TOKEN";

impl Api {
    /// The address is the server's own whether the caller asks for its proxy or not: one
    /// connection then carries everything, and nothing inside a sandbox listens on the host.
    pub(super) fn endpoint(
        &self,
        place: &Place,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::read(request.uri().query());
        let mut faults = Faults::default();
        let port = read_port(&place.port, &mut faults);
        let through_server = query.boolean("use_server_proxy", &mut faults);
        let expires = query.integer("expires", 0, i64::MAX, &mut faults);
        let port = faults.or(port)?.unwrap_or_default();
        let port = in_range(port)?;
        match (expires, through_server) {
            (Some(_), Some(true)) => {
                return Err(Refusal::parameter(
                    "use_server_proxy and expires exclude each other",
                ));
            }
            (Some(_), _) => {
                let message = "this server does not sign addresses; use the endpoint's headers";
                return Err(Refusal::new(400, code::API_NOT_SUPPORTED, message));
            }
            (None, _) => {}
        }
        let id = id(place)?;
        self.lifecycle.reachable(&id).map_err(no_endpoint)?;
        let base = if place.is_v1 { "/v1" } else { "" };
        let host = self.host_of(request);
        let token = Secret::new(self.gate.token(&id));
        Ok(reply::json(
            200,
            &Endpoint {
                endpoint: format!("{host}{base}/sandboxes/{id}/proxy/{port}"),
                headers: Some(BTreeMap::from([(TOKEN_HEADER.to_owned(), token)])),
            },
        ))
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
