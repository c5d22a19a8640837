//! One request and its answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use barchan_egress::host::Host;
use barchan_egress::name::Name;
use barchan_egress::vault::{Binding, is_encoded, port};
use barchan_wire::egress::vault::Scheme;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{http1, http2};
use tokio::time::timeout;
use tokio_rustls::rustls::sign::CertifiedKey;

use super::body::{self, Body, BoxError, HoldError};
use super::{Of, Upstream, hops, refuse};
use crate::app::App;
use crate::limits::BODY_WAIT;
use crate::line::Line;
use crate::sandbox::Sandbox;

/// What all requests of a connection have in common.
pub(super) struct Context {
    app: Rc<App>,
    sandbox: Rc<Sandbox>,
    pub(super) line: Rc<Line>,
    scheme: Scheme,
    /// Whom they are for.
    pub(super) host: Name,
    is_switched: Cell<bool>,
}

/// How requests go on.
pub(super) enum Sender {
    /// One after the other.
    Http1(RefCell<Option<http1::SendRequest<Body>>>),
    /// Side by side.
    Http2(http2::SendRequest<Body>),
}

/// What carries requests to the server, and answers back.
pub(super) struct Exchange {
    context: Rc<Context>,
    sender: Sender,
}

/// Why a request does not go on.
type Refusal = (StatusCode, &'static str);

const BUSY: Refusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "Too many bodies are held to be changed; try again.",
);
const MISDIRECTED: Refusal = (
    StatusCode::MISDIRECTED_REQUEST,
    "This request is for another host than its connection was made for.",
);

impl Context {
    pub(super) fn new((app, sandbox, line): &Of, scheme: Scheme, host: Name) -> Self {
        Self {
            app: Rc::clone(app),
            sandbox: Rc::clone(sandbox),
            line: Rc::clone(line),
            scheme,
            host,
            is_switched: Cell::new(false),
        }
    }

    /// Whether the connection has become something else than HTTP, or is about to.
    pub(super) const fn is_switched(&self) -> bool {
        self.is_switched.get()
    }

    /// What the client is shown as the host's certificate.
    pub(super) fn leaf(&self) -> Option<Arc<CertifiedKey>> {
        let now = (self.app.clock.now().wall, self.app.now_ms());
        let vault = self.sandbox.vault()?;
        vault.signer.leaf(&self.host, now).ok()
    }

    /// How the server is believed.
    pub(super) fn upstream(&self) -> Rc<Upstream> {
        Rc::clone(&self.app.operator.borrow().upstream)
    }

    /// The binding of a request, by what the vault says now.
    fn binding(&self, head: &Parts) -> Option<Rc<Binding>> {
        let to = (self.scheme, &self.host);
        let vault = self.sandbox.vault()?;
        vault.table.find(to, head.method.as_str(), head.uri.path())
    }

    /// Whether a request is for the host that the connection was made to. Another may be one that
    /// nobody judged, or whose credentials are others.
    fn is_meant(&self, head: &Parts) -> bool {
        let is_own = |text: &[u8]| {
            let port = format!(":{}", port(self.scheme));
            let has_port = !text.contains(&b':') || text.ends_with(port.as_bytes());
            has_port && Host::from_authority(text) == Ok(Host::Name(self.host.clone()))
        };
        let authority = head.uri.authority().map(|it| it.as_str().as_bytes());
        let hosts: Vec<&[u8]> = head
            .headers
            .get_all(HOST)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let said = authority.into_iter().chain(hosts.iter().copied());
        let (count, fits) = said.fold((0, true), |(count, fits), it| {
            (count + 1, fits && is_own(it))
        });
        fits && count > 0 && hosts.len() <= 1
    }
}

impl Sender {
    pub(super) const fn of_http1(sender: http1::SendRequest<Body>) -> Self {
        Self::Http1(RefCell::new(Some(sender)))
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        match self {
            Self::Http1(place) => {
                // Requests come one after the other, so it is always there.
                let sender = place.borrow_mut().take();
                let mut sender = sender.ok_or("the server is gone")?;
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                *place.borrow_mut() = Some(sender);
                Ok(response)
            }
            Self::Http2(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
        }
    }
}

impl Exchange {
    pub(super) const fn new(context: Rc<Context>, sender: Sender) -> Self {
        Self { context, sender }
    }

    /// Answers a request. An error ends the connection, or the stream of HTTP/2: there is nothing
    /// that could be said truly for a server that is gone.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, BoxError> {
        let (request, binding) = match self.prepare(request).await {
            Ok(prepared) => prepared,
            Err((status, words)) => return Ok(refuse::answer(status, words)),
        };
        let is_upgrade = hops::is_upgrade(request.headers());
        // Said before, as the server's side ends with its answer.
        self.context.is_switched.set(is_upgrade);
        let response = self.sender.send(request).await?;
        let (mut head, body) = response.into_parts();
        let is_switching = head.status == StatusCode::SWITCHING_PROTOCOLS;
        if is_switching && !is_upgrade {
            return Err("the server switched to what nobody asked for".into());
        }
        self.context.is_switched.set(is_switching);
        let is_packed = is_encoded(&head.headers) || hops::is_packed(&head.headers);
        hops::answered(&mut head.headers, is_switching);
        let Some(scrubber) = binding.and_then(|it| it.scrubber()) else {
            return Ok(Response::from_parts(head, body::passing(body)));
        };
        let is_part = head.status == StatusCode::PARTIAL_CONTENT
            || head.headers.contains_key(http::header::CONTENT_RANGE);
        if is_packed || is_part {
            let words = "The answer is compressed or a part, though that was not asked for, so \
                         that no credential could be taken out of it.";
            return Ok(refuse::answer(StatusCode::BAD_GATEWAY, words));
        }
        head.headers.remove(CONTENT_LENGTH);
        // The words behind the status may say a value, too.
        head.extensions.clear();
        for value in head.headers.values_mut() {
            if let Some(clean) = scrubber.header(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&clean)?;
            }
        }
        Ok(Response::from_parts(head, body::scrubbed(body, scrubber)))
    }

    /// Puts credentials into a request, if any belong there.
    async fn prepare(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Request<Body>, Option<Rc<Binding>>), Refusal> {
        let (mut head, body) = request.into_parts();
        if head.method == Method::CONNECT {
            let words = "CONNECT makes no sense here: this connection is for one host.";
            return Err((StatusCode::METHOD_NOT_ALLOWED, words));
        }
        if !self.context.is_meant(&head) {
            return Err(MISDIRECTED);
        }
        hops::asked(&mut head.headers);
        if matches!(self.sender, Sender::Http1(_)) {
            head.version = Version::HTTP_11;
            // A client may have said that it is about its connection alone, and it is gone then.
            let host = HeaderValue::from_str(self.context.host.as_str());
            head.headers.insert(HOST, host.map_err(|_| MISDIRECTED)?);
            // Whom it is for is known, and a whole URL would make a proxy of some servers.
            head.uri = head
                .uri
                .path_and_query()
                .cloned()
                .map_or(head.uri, Uri::from);
        }
        let Some(binding) = self.context.binding(&head) else {
            return Ok((Request::from_parts(head, body::passing(body)), None));
        };
        if binding.scrubber().is_some() && hops::is_upgrade(&head.headers) {
            let words = "What is said after an upgrade cannot be kept free of credentials, as the \
                         vault's binding asks.";
            return Err((StatusCode::FORBIDDEN, words));
        }
        let body = match binding.rewrites_bodies() && !body.is_end_stream() {
            true => self.rewrite_body(&mut head, body, &binding).await?,
            false => body::passing(body),
        };
        binding.rewrite(&mut head).map_err(not_sent)?;
        self.context.line.got_credentials();
        Ok((Request::from_parts(head, body), Some(binding)))
    }

    async fn rewrite_body(
        &self,
        head: &mut Parts,
        body: Incoming,
        binding: &Binding,
    ) -> Result<Body, Refusal> {
        if is_encoded(&head.headers) {
            return Ok(body::passing(body));
        }
        let places = Arc::clone(&self.context.sandbox.bodies);
        let place = match self.sender {
            // Whoever has one keeps it until the server has taken its body.
            Sender::Http1(_) => {
                let wait = timeout(BODY_WAIT, places.acquire_owned()).await;
                wait.ok().and_then(Result::ok)
            }
            // Bodies that waited would fill what all of the connection may have under way.
            Sender::Http2(_) => places.try_acquire_owned().ok(),
        };
        let place = place.ok_or(BUSY)?;
        let bytes = body::hold(body).await.map_err(|error| match error {
            HoldError::Long => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is longer than 8 MiB, the most in which credentials are replaced.",
            ),
            HoldError::Late => (StatusCode::REQUEST_TIMEOUT, "The body did not come."),
        })?;
        let changed = binding.rewrite_body(&head.headers, &bytes);
        let bytes = changed.map_err(not_sent)?.unwrap_or(bytes);
        head.headers.insert(CONTENT_LENGTH, bytes.len().into());
        Ok(body::whole(bytes.into(), place))
    }
}

fn not_sent(_: barchan_egress::vault::RewriteError) -> Refusal {
    let words =
        "With its credentials, this request would be too long or be none, and was not sent.";
    (StatusCode::FORBIDDEN, words)
}
