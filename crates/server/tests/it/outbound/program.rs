//! A program that guards what sandboxes send out, in so far as the server can see one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use barchan_wire::egress::{
    Ask, Connection, Event, Guarded, GuardedList, GuardedRow, POLICY_VERSION, PeerCall,
    PolicyStatus, Protocol, Settings, Verdict, What,
};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule, Time};
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The program, and the socket at which it is or is not.
pub(crate) struct Program {
    _home: tempfile::TempDir,
    socket: PathBuf,
    running: Option<JoinSet<()>>,
    pub(crate) state: Arc<State>,
}

/// What it knows.
pub(crate) struct State {
    known: Mutex<Known>,
    /// How many events there are.
    told: watch::Sender<usize>,
}

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) settings: Option<Settings>,
    pub(crate) sandboxes: BTreeMap<String, Guarded>,
    pub(crate) events: Vec<Event>,
    /// The asks that wait.
    pub(crate) waiting: Vec<String>,
    /// Decisions, as `id true`.
    pub(crate) decisions: Vec<String>,
    /// Every request, as `PUT /settings`.
    pub(crate) requests: Vec<String>,
    /// Answers about changes do not tell the policy.
    pub(crate) is_terse: bool,
    /// How often events were asked for.
    pub(crate) listeners: usize,
    /// Bindings to this host are refused.
    pub(crate) refuses_host: Option<String>,
    /// A sandbox that is refused.
    pub(crate) refuses: Option<String>,
    /// How long after the beginning its connections are opened, in seconds.
    pub(crate) later_s: i64,
}

impl Program {
    /// One that runs.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut program = Self {
            socket: home.path().join("egress.sock"),
            _home: home,
            running: None,
            state: Arc::new(State {
                known: Mutex::default(),
                told: watch::Sender::new(0),
            }),
        };
        program.start();
        program
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Begins anew and knows nothing.
    pub(crate) fn start(&mut self) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let state = Arc::clone(&self.state);
        let mut running = JoinSet::new();
        running.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&state);
                let service = service_fn(move |request| {
                    let state = Arc::clone(&state);
                    async move { Ok::<_, Infallible>(state.answer(request).await) }
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                connections.spawn(async move { connection.await.unwrap_or_default() });
            }
        });
        self.running = Some(running);
    }

    /// Goes, as SIGKILL would have it go.
    pub(crate) fn kill(&mut self) {
        self.running = None;
        std::fs::remove_file(&self.socket).unwrap();
        *self.known() = Known::default();
        self.state.told.send_replace(0);
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.state.known.lock().unwrap()
    }

    /// What it was told of a sandbox.
    pub(crate) fn guarded(&self, id: &SandboxId) -> Option<Guarded> {
        self.known().sandboxes.get(id.as_str()).cloned()
    }

    /// A sandbox wanted to reach a name, and was refused.
    pub(crate) fn deny(&self, id: &SandboxId, name: &str) {
        self.tell(id, (What::Verdict, Verdict::Deny), name, None);
    }

    /// A sandbox wants to reach a name, and waits for somebody's word.
    pub(crate) fn ask(&self, id: &SandboxId, name: &str, ask: Ask) {
        self.known().waiting.push(ask.id.clone());
        self.tell(id, (What::Asked, Verdict::Ask), name, Some(ask));
    }

    /// A sandbox calls what it says is a peer.
    pub(crate) fn call(&self, id: &SandboxId, peer: &str, call: &str) {
        let called = connection(1, peer, Verdict::Allow);
        let call = PeerCall {
            id: call.to_owned(),
            peer: peer.to_owned(),
            port: 80,
        };
        self.push(id, What::Called, called, (None, Some(call)));
    }

    /// Something becomes of a connection that was told of before.
    pub(crate) fn again(&self, id: &SandboxId, number: u64, (what, verdict): (What, Verdict)) {
        self.push(
            id,
            what,
            connection(number, "again.example", verdict),
            (None, None),
        );
    }

    fn tell(&self, id: &SandboxId, (what, verdict): (What, Verdict), name: &str, ask: Option<Ask>) {
        let number = self.known().events.len() as u64 + 1;
        self.push(id, what, connection(number, name, verdict), (ask, None));
    }

    fn push(
        &self,
        id: &SandboxId,
        what: What,
        mut connection: Connection,
        (ask, call): (Option<Ask>, Option<PeerCall>),
    ) {
        let mut known = self.known();
        let seq = known.events.len() as u64 + 1;
        let later = known.later_s * 1_000_000;
        let at = connection.opened_at.as_micros() + later;
        connection.opened_at = Time::from_micros(at).unwrap();
        known.events.push(Event {
            seq,
            sandbox: id.to_string(),
            what,
            connection,
            ask,
            call,
        });
        self.state.told.send_replace(known.events.len());
    }
}

/// A connection to a name.
pub(crate) fn connection(id: u64, name: &str, verdict: Verdict) -> Connection {
    Connection {
        id,
        protocol: Protocol::Tcp,
        name: Some(name.to_owned()),
        address: Some("192.0.2.1".to_owned()),
        port: Some(443),
        verdict,
        reason: "no_rule".to_owned(),
        rule: None,
        opened_at: Time::from_micros(1_900_000_000_000_000).unwrap(),
        closed_at: None,
        sent_bytes: 1,
        received_bytes: 2,
        credentials: 0,
    }
}

impl State {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path().to_owned();
        self.known
            .lock()
            .unwrap()
            .requests
            .push(format!("{} {path}", head.method));
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (&head.method, parts.as_slice()) {
            (_, ["events"]) => {
                let after = head.uri.query().unwrap().strip_prefix("after=").unwrap();
                self.events(after.parse().unwrap())
            }
            (_, ["settings"]) => {
                let settings: Settings = serde_json::from_slice(&body).unwrap();
                if settings.deny_always.iter().any(|it| it == "bad") {
                    return text(400, "`bad` is no target");
                }
                self.known.lock().unwrap().settings = Some(settings);
                text(204, "")
            }
            (_, ["policy", "check"]) => match serde_json::from_slice(&body) {
                Ok(policy) => fault(&policy).unwrap_or_else(|| text(204, "")),
                Err(error) => text(400, &error.to_string()),
            },
            (_, ["calls", _]) => text(204, ""),
            (_, ["asks", id]) => self.decide(id, &body),
            (method, ["sandboxes", rest @ ..]) => {
                self.known.lock().unwrap().answer(method, rest, &body)
            }
            _ => text(404, "there is no such path"),
        }
    }

    fn decide(&self, id: &str, body: &[u8]) -> Response<Body> {
        let mut known = self.known.lock().unwrap();
        let Some(at) = known.waiting.iter().position(|it| it == id) else {
            return text(404, "nobody waits");
        };
        known.waiting.remove(at);
        let decision: barchan_wire::egress::Decision = serde_json::from_slice(body).unwrap();
        known.decisions.push(format!("{id} {}", decision.allow));
        text(204, "")
    }

    fn events(self: Arc<Self>, after: usize) -> Response<Body> {
        self.known.lock().unwrap().listeners += 1;
        let told = self.told.subscribe();
        let stream =
            futures::stream::unfold((self, told, after), |(state, mut told, at)| async move {
                told.wait_for(|count| *count > at).await.ok()?;
                let line = {
                    let known = state.known.lock().unwrap();
                    let mut line = serde_json::to_vec(known.events.get(at)?).unwrap();
                    line.push(b'\n');
                    line
                };
                Some((line, (state, told, at + 1)))
            });
        let frames = stream.map(|line| Ok(Frame::data(Bytes::from(line))));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}

impl Known {
    fn answer(&mut self, method: &Method, rest: &[&str], body: &[u8]) -> Response<Body> {
        match rest {
            [] => {
                let row = |(id, guarded): (&String, &Guarded)| GuardedRow {
                    id: id.clone(),
                    version: guarded.version,
                };
                let sandboxes = self.sandboxes.iter().map(row).collect();
                value(&GuardedList { sandboxes }, None)
            }
            [id] if method == Method::PUT && self.refuses.as_deref() == Some(*id) => {
                text(400, "its policy is none any more")
            }
            [id] if method == Method::PUT => {
                let guarded: Guarded = serde_json::from_slice(body).unwrap();
                let bindings = guarded.vault.iter().flat_map(|it| &it.bindings);
                let mut hosts = bindings.flat_map(|it| &it.requests.hosts);
                if hosts.any(|host| self.refuses_host.as_ref() == Some(host)) {
                    return text(400, "a binding names a host that is not allowed");
                }
                self.sandboxes.insert((*id).to_owned(), guarded);
                text(204, "")
            }
            [id] => {
                self.sandboxes.remove(*id);
                text(204, "")
            }
            [id, rest @ ..] => {
                let is_terse = self.is_terse;
                let Some(guarded) = self.sandboxes.get_mut(*id) else {
                    return text(404, "no such sandbox");
                };
                match rest {
                    ["policy"] => policy(guarded, method, body, is_terse),
                    ["x", "connections"] => {
                        let connections = [connection(1, "\u{1b}[2J.example", Verdict::Deny)];
                        value(&json!({"connections": connections, "forgotten": 0}), None)
                    }
                    ["healthz"] => text(200, "ok"),
                    _ => text(404, "there is no such path"),
                }
            }
        }
    }
}

fn policy(guarded: &mut Guarded, method: &Method, body: &[u8], is_terse: bool) -> Response<Body> {
    let mut now = guarded.policy.clone().unwrap_or_default();
    match *method {
        Method::PATCH => {
            let mut rules: Vec<NetworkRule> = serde_json::from_slice(body).unwrap();
            now.egress
                .retain(|old| !rules.iter().any(|new| new.target == old.target));
            rules.append(&mut now.egress);
            now.egress = rules;
        }
        Method::DELETE => {
            let targets: Vec<String> = serde_json::from_slice(body).unwrap();
            now.egress.retain(|rule| !targets.contains(&rule.target));
        }
        Method::PUT | Method::POST => now = serde_json::from_slice(body).unwrap(),
        _ => return status(guarded, true),
    }
    if let Some(fault) = fault(&now) {
        return fault;
    }
    guarded.policy = Some(now);
    guarded.version += 1;
    status(guarded, !is_terse)
}

fn status(guarded: &Guarded, is_whole: bool) -> Response<Body> {
    let status = PolicyStatus {
        status: "ok".to_owned(),
        mode: "enforcing".to_owned(),
        enforcement_mode: "dns+nft".to_owned(),
        reason: None,
        policy: guarded.policy.clone().filter(|_| is_whole),
    };
    value(&status, Some(guarded.version))
}

fn fault(policy: &NetworkPolicy) -> Option<Response<Body>> {
    let is_bad = policy.egress.iter().any(|rule| rule.target == "bad");
    is_bad.then(|| text(400, "`bad` is no target"))
}

fn value(value: &impl serde::Serialize, version: Option<u64>) -> Response<Body> {
    let mut response = Response::builder().header("content-type", "application/json");
    if let Some(version) = version {
        response = response.header(POLICY_VERSION, version);
    }
    let body = serde_json::to_vec(value).unwrap();
    response
        .body(Full::new(body.into()).boxed_unsync())
        .unwrap()
}

fn text(status: u16, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(text.to_owned())).boxed_unsync();
    let response = Response::builder().status(status);
    response
        .header("content-type", "text/plain")
        .body(body)
        .unwrap()
}
