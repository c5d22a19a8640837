//! `/x/approvals`: what waits for somebody's word.

use barchan_daemon::payload::Payload;
use barchan_wire::lifecycle::approval::{ApprovalList, ApprovalState, Decide};
use barchan_wire::lifecycle::code;
use http::{Request, Response};

use super::errors::Refusal;
use super::identity::Identity;
use super::query::Query;
use super::reply::{self, Body};
use super::routes::Place;
use super::{Api, body};
use crate::approvals::{ApprovalError, Said};
use crate::audit::Actor;

/// Most values of a filter; there are fewer states.
const STATES_MAX: usize = 16;

type Answer = Result<Response<Body>, Refusal>;

impl Api {
    pub(super) fn list_approvals(&self, request: &Request<Payload>) -> Answer {
        let query = Query::read(request.uri().query());
        let states = query.all("state").take(STATES_MAX).map(state);
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let found = self.lifecycle.approvals(&states);
        let items = found.iter().map(|record| record.shown()).collect();
        Ok(reply::json(200, &ApprovalList { items }))
    }

    pub(super) fn approval(&self, place: &Place) -> Answer {
        let record = self.lifecycle.approval(&place.id)?;
        Ok(reply::json(200, &record.shown()))
    }

    pub(super) async fn say(
        &self,
        place: &Place,
        request: Request<Payload>,
        (identity, allow): (&Identity, bool),
    ) -> Answer {
        let body = body::read_json(request, self.body_wait).await?;
        let Decide { reason } = Decide::read(body.as_ref())?;
        // While the body was on its way, the key may have been revoked.
        let lifecycle = self.lifecycle_now(identity)?;
        let by = named(&identity.actor());
        let said = Said { allow, by, reason };
        let record = lifecycle.decide(&place.id, said).await?;
        Ok(reply::json(200, &record.shown()))
    }
}

/// A state by its word, in any case.
fn state(text: &str) -> Result<ApprovalState, Refusal> {
    let mut all = ApprovalState::ALL.into_iter();
    let found = all.find(|state| state.word().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        let words = ApprovalState::ALL.map(ApprovalState::word).join(", ");
        Refusal::parameter(format!("`state` is {shown:?}, and takes {words}"))
    })
}

/// Who somebody is, in one line.
fn named(actor: &Actor) -> String {
    let uid = actor.uid.map(|uid| format!("uid {uid}"));
    let parts = [
        Some(&actor.kind),
        actor.key.as_ref(),
        actor.label.as_ref(),
        uid.as_ref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    parts.join(" ")
}

/// The status and code of a word that does not count.
pub(super) fn by_approval(error: &ApprovalError) -> (u16, &'static str) {
    match error {
        ApprovalError::NotFound(_) => (404, code::APPROVAL_NOT_FOUND),
        ApprovalError::NotPending { .. } => (409, code::APPROVAL_NOT_PENDING),
        ApprovalError::Over(_) => (409, code::APPROVAL_EXPIRED),
        ApprovalError::TooMany(_) | ApprovalError::Store(_) => (500, code::INTERNAL_ERROR),
        ApprovalError::Stopping => (503, code::RUNTIME_UNAVAILABLE),
    }
}
