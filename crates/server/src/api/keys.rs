//! `/x/keys`: keys of the API, for admins.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::{CreateKey, KeyList, NewKey, RotateKey, code};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Request, Response};

use super::errors::Refusal;
use super::reply::{self, Body};
use super::routes::Place;
use super::trail::About;
use super::{Api, body};
use crate::access::AccessError;

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) fn list_keys(&self) -> Answer {
        let keys = self.tenancy.access.list_keys();
        Ok(reply::json(200, &KeyList { keys }))
    }

    pub(super) async fn create_key(&self, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let asked = CreateKey::read(body.as_ref())?;
        let made = self.tenancy.access.create_key(asked).await?;
        Ok(shown_once(201, &made))
    }

    pub(super) async fn rotate_key(&self, place: &Place, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let RotateKey { grace_seconds } = RotateKey::read(body.as_ref())?;
        let id = place.id.clone();
        let made = self.tenancy.access.rotate_key(id, grace_seconds).await?;
        Ok(shown_once(200, &made))
    }

    pub(super) async fn revoke_key(&self, place: &Place) -> Answer {
        self.tenancy.access.revoke_key(place.id.clone()).await?;
        Ok(reply::empty(204))
    }
}

/// The one answer that has a key in it.
fn shown_once(status: u16, made: &NewKey) -> Response<Body> {
    let mut response = reply::json(status, made);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let about = About::Other(made.report.id.clone());
    response.extensions_mut().insert(about);
    response
}

impl From<AccessError> for Refusal {
    fn from(error: AccessError) -> Self {
        let (status, code) = match &error {
            AccessError::NoKey(_) => (404, code::KEY_NOT_FOUND),
            AccessError::NoTenant(_) => (404, code::TENANT_NOT_FOUND),
            AccessError::TenantExists(_) => (409, code::TENANT_ALREADY_EXISTS),
            AccessError::HasKeys { .. } | AccessError::HasSandboxes { .. } => {
                (409, code::TENANT_IN_USE)
            }
            AccessError::TooMany { .. } => (409, code::ACCESS_LIMIT_REACHED),
            AccessError::Past => (400, code::INVALID_PARAMETER),
            AccessError::Store(_) => (500, code::INTERNAL_ERROR),
            AccessError::Stopping => (503, code::RUNTIME_UNAVAILABLE),
        };
        if status >= 500 {
            tracing::error!(%error, code, "a request failed");
        }
        Self::new(status, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_may_be_is_refused_as_such() {
        let (what, count) = ("keys", 10_000);
        let refusal = Refusal::from(AccessError::TooMany { what, count });
        let told = format!("{} {}", refusal.status(), refusal.code());
        assert_eq!(told, "409 ACCESS_LIMIT_REACHED");
        assert!(refusal.message().contains("10000 keys"));
    }
}
