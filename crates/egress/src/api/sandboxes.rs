//! One sandbox: what the server says about it, and what its port of outbound policy serves.

use barchan_daemon::payload::Payload;
use barchan_egress::peers::Peers;
use barchan_egress::policy::{Action, Policy};
use barchan_wire::egress::Guarded;
use barchan_wire::id::SandboxId;
use http::{Method, StatusCode};

use super::{body, policy};
use crate::answers::{Answer, Refusal, done, json, text};
use crate::app::App;
use crate::intercept::Vault;
use crate::limits::GUARDED_BYTES_MAX;

/// Serves what is below `/sandboxes/{id}`.
///
/// # Errors
/// Why not.
pub(super) async fn route(
    app: &App,
    (method, rest): (&Method, &[&str]),
    id: &SandboxId,
    payload: Payload,
) -> Result<Answer, Refusal> {
    match (method, rest) {
        (&Method::PUT, []) => {
            let guarded: Guarded = body::json(payload, GUARDED_BYTES_MAX).await?;
            guard(app, id, &guarded)
        }
        (&Method::DELETE, []) => {
            if let Some(sandbox) = app.sandbox(id) {
                sandbox.unguard();
                app.forget_unused(&sandbox);
            }
            Ok(done())
        }
        (_, []) => Err(Refusal::not_allowed("PUT, DELETE")),
        (method, rest) => {
            let known = app.sandbox(id).filter(|sandbox| sandbox.is_guarded());
            let sandbox = known.ok_or_else(|| {
                Refusal::not_found(format!("the sandbox {id} is not guarded here"))
            })?;
            match (method, rest) {
                (&Method::GET, ["healthz"]) => Ok(text("ok")),
                (method, ["policy"]) => policy::route(app, &sandbox, method, payload).await,
                (&Method::GET, ["x", "connections"]) => json(&sandbox.ledger.tell()),
                (_, ["healthz"] | ["x", "connections"]) => Err(Refusal::not_allowed("GET")),
                (_, rest) => Err(super::unknown(&format!("/{}", rest.join("/")))),
            }
        }
    }
}

/// Takes over what the server says about a sandbox.
fn guard(app: &App, id: &SandboxId, guarded: &Guarded) -> Result<Answer, Refusal> {
    let policy = match &guarded.policy {
        // The internet is open, and nothing else.
        None => Policy::new(Action::Allow),
        Some(wire) => policy::taken(Policy::read(wire))?,
    };
    let peers = Peers::read(&guarded.peers).map_err(Refusal::bad_request)?;
    let overlay = &app.operator.borrow().overlay;
    let known = app.sandbox(id).and_then(|sandbox| sandbox.vault());
    let vault = guarded.vault.as_ref().map(|wire| {
        Vault::new(wire, (overlay, &policy), known.as_deref()).map_err(Refusal::bad_request)
    });
    let vault = vault.transpose()?;
    let sandbox = app.sandbox_or_new(id).ok_or_else(|| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "there are too many sandboxes; take some away first",
        )
    })?;
    sandbox.meter.set(guarded.limits);
    *sandbox.peers.borrow_mut() = peers;
    sandbox.set_vault(vault);
    sandbox.set_policy(policy, guarded.version, overlay);
    Ok(done())
}
