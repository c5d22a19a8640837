//! The routes; `barchan_wire::egress` has their table. Errors are lines of text.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_egress::policy::Policy;
use barchan_wire::egress::{Decision, GuardedList, GuardedRow, Settings};
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::NetworkPolicy;
use http::{Method, Request};

use crate::answers::{Answer, Body, Refusal, done, json, text, typed};
use crate::app::App;
use crate::limits::{DECISION_BYTES_MAX, GUARDED_BYTES_MAX, SETTINGS_BYTES_MAX};

mod body;
mod calls;
mod policy;
mod sandboxes;
mod settings;

/// Answers a request, whatever it is.
pub(crate) async fn answer(app: &Rc<App>, request: Request<Payload>) -> Answer {
    route(app, request).await.unwrap_or_else(Refusal::answer)
}

async fn route(app: &Rc<App>, mut request: Request<Payload>) -> Result<Answer, Refusal> {
    let stream = hyper::upgrade::on(&mut request);
    let (head, payload) = request.into_parts();
    let segments: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    match (&head.method, segments.as_slice()) {
        (&Method::GET, ["healthz"]) => Ok(text("ok")),
        (&Method::PUT, ["settings"]) => {
            let settings: Settings = body::json(payload, SETTINGS_BYTES_MAX).await?;
            settings::set(app, &settings)?;
            Ok(done())
        }
        (&Method::GET, ["sandboxes"]) => json(&list(app)),
        (method, ["sandboxes", id, rest @ ..]) => {
            let id: SandboxId = id.parse().map_err(Refusal::bad_request)?;
            sandboxes::route(app, (method, rest), &id, payload).await
        }
        (&Method::POST, ["policy", "check"]) => {
            let wire: NetworkPolicy = body::json(payload, GUARDED_BYTES_MAX).await?;
            policy::taken(Policy::read(&wire))?;
            Ok(done())
        }
        (&Method::GET, ["events"]) => events(app, head.uri.query()),
        (&Method::PUT, ["asks", id]) => {
            let decision: Decision = body::json(payload, DECISION_BYTES_MAX).await?;
            match app.asks.decide(id, decision.allow) {
                true => Ok(done()),
                false => Err(Refusal::not_found(
                    "nobody waits for this decision: it was made, or it was too late",
                )),
            }
        }
        (&Method::GET, ["calls", id]) => calls::bring(app, &head, id, stream),
        (&Method::DELETE, ["calls", id]) => {
            app.calls.give_up(id);
            Ok(done())
        }
        (_, ["calls", _]) => Err(Refusal::not_allowed("GET, DELETE")),
        (_, ["healthz" | "sandboxes" | "events"]) => Err(Refusal::not_allowed("GET")),
        (_, ["policy", "check"]) => Err(Refusal::not_allowed("POST")),
        (_, ["settings"] | ["asks", _]) => Err(Refusal::not_allowed("PUT")),
        _ => Err(unknown(head.uri.path())),
    }
}

/// 404 for a path that is no route.
fn unknown(path: &str) -> Refusal {
    let path: String = path.chars().take(200).collect();
    Refusal::not_found(format!("there is nothing at {path}"))
}

fn list(app: &App) -> GuardedList {
    let row = |sandbox: &Rc<crate::sandbox::Sandbox>| {
        let version = sandbox.with_guard(|guard| guard.version)?;
        Some(GuardedRow {
            id: sandbox.id.to_string(),
            version,
        })
    };
    GuardedList {
        sandboxes: app.sandboxes().iter().filter_map(row).collect(),
    }
}

/// `GET /events`: lines for as long as the caller listens.
fn events(app: &Rc<App>, query: Option<&str>) -> Result<Answer, Refusal> {
    let mut after = 0;
    for pair in query
        .unwrap_or_default()
        .split('&')
        .filter(|it| !it.is_empty())
    {
        let number = pair.strip_prefix("after=").and_then(|it| it.parse().ok());
        after = number.ok_or_else(|| {
            Refusal::bad_request("the query is `after=` and the number of the last event read")
        })?;
    }
    let (out, pieces) = tokio::sync::mpsc::channel(1);
    let app = Rc::clone(app);
    // It ends with its caller.
    tokio::task::spawn_local(async move {
        loop {
            let piece = tokio::select! {
                piece = app.events.after(after) => piece,
                () = out.closed() => return,
            };
            after = piece.1;
            if out.send(piece.0).await.is_err() {
                return;
            }
        }
    });
    Ok(typed("application/x-ndjson", Body::Stream(pieces)))
}
