//! `/x/tenants`: who shares this server, for admins.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::{CreateTenant, TenantList, TenantTerms};
use http::{Request, Response};

use super::errors::Refusal;
use super::reply::{self, Body};
use super::routes::Place;
use super::trail::About;
use super::{Api, body};

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) fn list_tenants(&self) -> Answer {
        let tenants = self.tenancy.access.list_tenants(&self.lifecycle.usages());
        Ok(reply::json(200, &TenantList { tenants }))
    }

    pub(super) fn tenant(&self, name: &str) -> Answer {
        let usage = |owner: &str| self.lifecycle.usage_of(owner);
        Ok(reply::json(200, &self.tenancy.access.tenant(name, usage)?))
    }

    pub(super) async fn create_tenant(&self, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let asked = CreateTenant::read(body.as_ref())?;
        let name = asked.name.clone();
        self.tenancy.access.create_tenant(asked).await?;
        let mut response = self.tenant(&name)?;
        *response.status_mut() = http::StatusCode::CREATED;
        response.extensions_mut().insert(About::Other(name));
        Ok(response)
    }

    pub(super) async fn change_tenant(&self, place: &Place, request: Request<Payload>) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let terms = TenantTerms::read(body.as_ref())?;
        self.tenancy
            .access
            .change_tenant(place.id.clone(), terms)
            .await?;
        self.tenant(&place.id)
    }

    pub(super) async fn remove_tenant(&self, place: &Place) -> Answer {
        let lifecycle = self.lifecycle.clone();
        let usage = move |owner: &str| lifecycle.usage_of(owner);
        self.tenancy
            .access
            .remove_tenant(place.id.clone(), usage)
            .await?;
        Ok(reply::empty(204))
    }
}
