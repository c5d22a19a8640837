//! Commands whose writings are sealed when they have ended: the header `X-Barchan-Seal`.
//!
//! Whatever can be refused is refused before the command runs: nobody is to believe in a layer that
//! never comes.

mod tail;

use std::sync::Arc;

use barchan_daemon::payload::Payload;
use barchan_runtime::EXECD_PORT;
use barchan_wire::execd::exec::{ExecRequest, MEDIA_TYPE};
use barchan_wire::header::{IDEMPOTENCY_KEY, SEAL};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::Layer;
use barchan_wire::lifecycle::layers::{SealLayer, WhenBusy, label_fault, label_of};
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use percent_encoding::percent_decode;

use super::auth::KEY_HEADERS;
use super::errors::Refusal;
use super::identity::Identity;
use super::proxy::{Form, Target};
use super::reply::Body;
use super::routes::Operation;
use super::{Api, Peer, body, guard};
use crate::observe::carried;
pub(crate) use tail::Sealing;
use tail::Stream;

/// A layer that is to be sealed when a command has ended.
pub(super) struct Order {
    /// The server as whoever asked for it sees it.
    api: Arc<Api>,
    identity: Identity,
    id: SandboxId,
    label: Option<String>,
}

/// Whether a request asks for a layer.
pub(super) fn is_asked(headers: &HeaderMap) -> bool {
    headers.contains_key(SEAL)
}

impl Api {
    /// What is to be sealed after the command that a request is for, and the request without that
    /// wish. It needs what the route of layers needs: who came in by a sandbox's token, or a
    /// signature, shows a key as well.
    pub(super) async fn order_seal(
        self: &Arc<Self>,
        peer: &Peer,
        target: &Target,
        (id, port): (&SandboxId, u16),
        request: Request<Payload>,
    ) -> Result<(Order, Request<Payload>), Refusal> {
        let headers = request.headers();
        check_place(target, port, request.method(), headers)?;
        guard::check_one(headers, &KEY_HEADERS)?;
        let identity = self.identify(peer, headers)?;
        let seals = Operation::SealLayer;
        seals.rights().check(identity.tenant().is_some())?;
        self.offer(seals)?;
        let api = self.seen_by(&identity);
        api.lifecycle.may_seal(id)?;
        let given = label(headers)?;
        let (mut head, body) = request.into_parts();
        head.headers.remove(SEAL);
        let body = body::read(&head.headers, body, self.body_wait, COMMAND_BODY_BYTES_MAX).await?;
        // What cannot be read the daemon refuses.
        let asked: Option<ExecRequest> = serde_json::from_slice(&body).ok();
        if asked.as_ref().is_some_and(|asked| asked.command.background) {
            let message = "a command in the background is not sealed, as its answer ends before it \
                           does: leave `X-Barchan-Seal` out, and call `POST /x/layers` later";
            return Err(Refusal::parameter(message));
        }
        let order = Order {
            api,
            identity,
            id: id.clone(),
            label: given.or_else(|| label_of(&asked?.command)),
        };
        Ok((order, Request::from_parts(head, Payload::whole(body))))
    }
}

impl Order {
    /// Who asked for the layer.
    pub(super) fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// The answer of the command, and what became of the layer behind it. A command that did not
    /// start is answered as it is.
    pub(super) fn follow(self, answer: Response<Body>) -> Response<Body> {
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
        let stream = match kind {
            _ if answer.status() != StatusCode::OK => return answer,
            Some(MEDIA_TYPE) => Stream::Frames,
            Some("text/event-stream") => Stream::Events,
            _ => return answer,
        };
        let clock = self.api.clock.clone();
        let work = Box::pin(carried(self.seal()));
        let mut answer = answer.map(|body| {
            let sealing = Sealing::new(body, stream, clock, work);
            Body::Sealing(Box::new(sealing))
        });
        answer.headers_mut().remove(CONTENT_LENGTH);
        answer
    }

    async fn seal(self) -> Result<Layer, Refusal> {
        // While the command ran, the key may have been revoked.
        let lifecycle = self.api.lifecycle_now(&self.identity)?;
        let wish = SealLayer {
            label: self.label,
            when_busy: WhenBusy::Force,
        };
        Ok(lifecycle.seal(&self.id, wish).await?)
    }
}

/// Only a command's answer has a place for a layer, and pages that a program shows have the
/// daemon's port under a host of their own: they are to push out nobody's layers.
fn check_place(
    target: &Target,
    port: u16,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let runs_command = port == EXECD_PORT
        && *target.form() == Form::Path
        && method == Method::POST
        && matches!(target.rest(), "/command" | "/x/exec");
    if !runs_command {
        let message = format!(
            "`X-Barchan-Seal` goes with a command alone: with POST of /command or /x/exec below \
             /sandboxes/{{id}}/proxy/{EXECD_PORT}"
        );
        return Err(Refusal::parameter(message));
    }
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let message = "a command with an Idempotency-Key may be answered twice, and is sealed by \
                       none of its answers: leave `X-Barchan-Seal` out, and call `POST /x/layers` \
                       when it has ended";
        return Err(Refusal::parameter(message));
    }
    Ok(())
}

/// The caller's label; an empty one is none.
fn label(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let faulty = |why: &str| Refusal::parameter(format!("the label in `X-Barchan-Seal` {why}"));
    let mut values = headers.get_all(SEAL).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(faulty("must come once"));
    };
    let label = percent_decode(value.as_bytes()).decode_utf8();
    let label = label.map_err(|_| faulty("must be UTF-8 with percent signs"))?;
    match label_fault(&label) {
        Some((_, why)) => Err(faulty(why)),
        None => Ok((!label.is_empty()).then(|| label.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_or_refused() {
        for (values, expected) in [
            (vec![""], Ok(None)),
            (vec!["make"], Ok(Some("make"))),
            (vec!["pip%20install"], Ok(Some("pip install"))),
            (vec!["%C3%BCber"], Ok(Some("\u{fc}ber"))),
            (vec!["100%"], Ok(Some("100%"))),
            (vec!["%ff"], Err(400)),
            (vec!["%1b[2J"], Err(400)),
            (vec!["a", "b"], Err(400)),
        ] {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(SEAL, value.parse().unwrap());
            }
            let read = label(&headers).map_err(|refusal| refusal.status());
            assert_eq!(read, expected.map(|it| it.map(str::to_owned)), "{values:?}");
        }
        let long =
            HeaderMap::from_iter([(SEAL.parse().unwrap(), "x".repeat(256).parse().unwrap())]);
        assert_eq!(label(&long).map_err(|refusal| refusal.status()), Err(400));
    }
}
