//! One request as operators see it: a figure, a span, a line of the log, an id in all of them.

use std::sync::Arc;
use std::time::Duration;

use barchan_daemon::payload::Payload;
use barchan_runtime::EXECD_PORT;
use barchan_wire::header::REQUEST_ID;
use barchan_wire::id::SandboxId;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use uuid::Uuid;

use super::errors::Refusal;
use super::proxy::{Form, Target};
use super::reply::Body;
use super::routes::{self, Found};
use super::trail::About;
use super::{Api, endpoints};
use crate::observe::{Answered, Context, Kind, SANDBOX, Scope, Span, TRACEPARENT, TRACESTATE};

/// Longest request id of a caller that is taken, in bytes.
const ID_BYTES_MAX: usize = 128;

/// Where the line of each request is written.
const LOG: &str = "barchan_server::access";

/// How loud that line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLog {
    Off,
    Debug,
    Info,
}

/// A request that is being answered. Dropped without an answer, its caller went away.
pub(super) struct Watched {
    api: Arc<Api>,
    id: HeaderValue,
    method: &'static str,
    aim: Aim,
    began: Duration,
    context: Option<Context>,
    span: Span,
    answered: Answered,
}

/// What a request is for, in words that do not grow with its callers'.
struct Aim {
    operation: &'static str,
    route: &'static str,
    sandbox: Option<SandboxId>,
}

impl AccessLog {
    /// What the setting says; `None` when that is no word for any of these.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            _ => None,
        }
    }
}

impl Watched {
    pub(super) fn begin(
        api: &Arc<Api>,
        request: &Request<Payload>,
        target: &Result<Option<Target>, Refusal>,
    ) -> Self {
        let id = request_id(request);
        let aim = Aim::of(request, target);
        let method = method(request.method());
        let (context, mut span) = match api.observe.traces() {
            false => (None, Span::none()),
            true => {
                let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
                let parent = header(TRACEPARENT);
                let parent = parent.and_then(|it| Context::read(it, header(TRACESTATE)));
                let name = format!("{method} {}", aim.route);
                api.observe.begin(parent.as_ref(), name, Kind::Server)
            }
        };
        span.set("http.request.method", method);
        span.set("http.route", aim.route);
        span.set("barchan.request.id", text(&id));
        if let Some(sandbox) = &aim.sandbox {
            span.set(SANDBOX, sandbox.as_str());
        }
        Self {
            api: Arc::clone(api),
            id,
            method,
            aim,
            began: api.clock.now().uptime,
            context,
            span,
            answered: Answered::Aborted,
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> &HeaderValue {
        &self.id
    }

    /// What tasks that work for it are told of it.
    pub(super) fn scope(&self) -> Scope {
        Scope {
            request_id: Some(Arc::from(text(&self.id))),
            context: self.context.clone(),
        }
    }

    /// What every line of the log about it has.
    pub(super) fn log_span(&self) -> tracing::Span {
        // As loud as anything, so that no level takes the id from a line that is written.
        tracing::error_span!("request", request_id = text(&self.id))
    }

    /// Ends as its answer begins, and gives that the request's id. The span goes on until the
    /// answer is sent.
    pub(super) fn end(mut self, response: &mut Response<Body>) {
        let status = response.status().as_u16();
        self.answered = Answered::With(status);
        let mut span = std::mem::replace(&mut self.span, Span::none());
        span.set_number("http.response.status_code", i64::from(status));
        let began = self.took().as_micros();
        span.set_number(
            "barchan.answer.began_us",
            i64::try_from(began).unwrap_or(i64::MAX),
        );
        if status >= 500 {
            span.fail("the answer is a failure of the server");
        }
        // A sandbox that was made by this request.
        if let Some(About::Sandbox(sandbox)) = response.extensions_mut().remove() {
            span.set(SANDBOX, sandbox.as_str());
            self.aim.sandbox = Some(sandbox);
        }
        response.headers_mut().insert(REQUEST_ID, self.id.clone());
        let body = std::mem::replace(response.body_mut(), Body::Whole(Bytes::new()));
        *response.body_mut() = body.traced(span);
    }

    fn took(&self) -> Duration {
        self.api.clock.now().uptime.saturating_sub(self.began)
    }

    fn tell(&self, took: Duration) {
        let status = match self.answered {
            Answered::With(status) => status,
            // What proxies write for a caller who did not wait.
            Answered::Aborted => 499,
        };
        let (method, route, request_id) = (self.method, self.aim.route, text(&self.id));
        let sandbox = self.aim.sandbox.as_ref().map_or("", SandboxId::as_str);
        let ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        match self.api.access_log {
            AccessLog::Off => {}
            AccessLog::Debug => {
                tracing::debug!(target: LOG, method, route, status, ms, request_id, sandbox);
            }
            AccessLog::Info => {
                tracing::info!(target: LOG, method, route, status, ms, request_id, sandbox);
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let took = self.took();
        if self.answered == Answered::Aborted {
            self.span.fail("the caller went away");
        }
        let requests = &self.api.observe.metrics().requests;
        requests.count(self.aim.operation, self.answered, took);
        self.tell(took);
    }
}

impl Aim {
    fn of(request: &Request<Payload>, target: &Result<Option<Target>, Refusal>) -> Self {
        match target {
            Ok(Some(target)) => Self::of_port(target),
            Ok(None) => Self::of_route(request),
            Err(_) => Self::other(),
        }
    }

    fn of_port(target: &Target) -> Self {
        let is_daemon = endpoints::port(target.port()).is_ok_and(|port| port == EXECD_PORT);
        let route = match target.form() {
            Form::Path => "/sandboxes/{sandboxId}/proxy/{port}",
            Form::Signed => "/sandboxes/{sandboxId}/signed/{port}",
            Form::Host => "{port}-{sandboxId}",
        };
        Self {
            operation: if is_daemon {
                routes::DAEMON
            } else {
                routes::PORT
            },
            route,
            sandbox: target.id().parse().ok(),
        }
    }

    fn of_route(request: &Request<Payload>) -> Self {
        let Found::Operation(_, place) = routes::find(request.method(), request.uri().path())
        else {
            return Self::other();
        };
        let Some((operation, route)) = routes::named(&place) else {
            return Self::other();
        };
        let is_of_sandbox = route.contains("/sandboxes/{sandboxId}");
        Self {
            operation,
            route,
            sandbox: is_of_sandbox.then(|| place.id.parse().ok()).flatten(),
        }
    }

    fn other() -> Self {
        Self {
            operation: routes::OTHER,
            route: "none",
            sandbox: None,
        }
    }
}

/// The method, unless it is of a caller's making.
fn method(method: &Method) -> &'static str {
    let known = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
    ];
    let found = known.into_iter().find(|it| *it == method.as_str());
    found.unwrap_or("_OTHER")
}

/// The caller's id of the request if it is of plain, short shape, else a new one.
// BOUNDARY: stranger → log and daemon. Test: request_ids_are_echoed_or_made
fn request_id(request: &Request<Payload>) -> HeaderValue {
    let mut given = request.headers().get_all(REQUEST_ID).iter();
    let only = given.next().filter(|_| given.next().is_none());
    only.filter(|id| is_plain(id.as_bytes()))
        .cloned()
        .unwrap_or_else(|| {
            let mut text = [0; 32];
            let id = Uuid::new_v4().simple().encode_lower(&mut text);
            HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static("-"))
        })
}

/// Letters, digits and what joins them: nothing that a log, a shell or a page would read otherwise.
fn is_plain(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@~".contains(byte);
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.iter().all(plain)
}

fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}
