//! The policy of a sandbox: read, replaced, changed.

use barchan_daemon::payload::Payload;
use barchan_egress::policy::{Mode, Policy, PolicyError};
use barchan_wire::egress::{POLICY_VERSION, PolicyStatus};
use barchan_wire::lifecycle::{NetworkPolicy, NetworkRule};
use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;

use super::body;
use crate::answers::{Answer, Refusal, json, whole_story};
use crate::app::App;
use crate::limits::POLICY_BYTES_MAX;
use crate::sandbox::{Guard, Sandbox};

/// A policy as callers send it: each part may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    default_action: Option<String>,
    egress: Option<Vec<SentRule>>,
}

/// A rule as callers send it.
#[derive(Debug, Deserialize)]
struct SentRule {
    #[serde(default)]
    action: Option<String>,
    target: String,
}

impl From<SentRule> for NetworkRule {
    fn from(sent: SentRule) -> Self {
        Self {
            action: sent.action.unwrap_or_default(),
            target: sent.target,
        }
    }
}

/// Serves `/policy`.
///
/// # Errors
/// Why not.
pub(super) async fn route(
    app: &App,
    sandbox: &Sandbox,
    method: &Method,
    payload: Payload,
) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => status(sandbox, None),
        Method::POST | Method::PUT => {
            let bytes = body::whole(payload, POLICY_BYTES_MAX).await?;
            replace(app, sandbox, bytes.trim_ascii())
        }
        Method::PATCH => {
            let bytes = body::whole(payload, POLICY_BYTES_MAX).await?;
            let sent: Vec<SentRule> = body::parse(&bytes)?;
            let rules: Vec<NetworkRule> = sent.into_iter().map(NetworkRule::from).collect();
            change(app, sandbox, |policy| policy.merged(&rules))?;
            status(sandbox, None)
        }
        Method::DELETE => {
            let bytes = body::whole(payload, POLICY_BYTES_MAX).await?;
            let targets: Vec<String> = body::parse(&bytes)?;
            let mut is_any = false;
            change(app, sandbox, |policy| {
                let (policy, matched) = policy.without(&targets)?;
                is_any = !matched.is_empty();
                Ok(policy)
            })?;
            let reason = (!is_any).then_some("no matching targets found");
            status(sandbox, reason)
        }
        _ => Err(Refusal::not_allowed("GET, POST, PUT, PATCH, DELETE")),
    }
}

fn replace(app: &App, sandbox: &Sandbox, bytes: &[u8]) -> Result<Answer, Refusal> {
    let sent: Option<Sent> = match bytes {
        [] => None,
        bytes => body::parse(bytes)?,
    };
    let sent = sent.unwrap_or_default();
    let wire = NetworkPolicy {
        default_action: sent.default_action,
        egress: sent
            .egress
            .into_iter()
            .flatten()
            .map(NetworkRule::from)
            .collect(),
    };
    change(app, sandbox, |_| Policy::read(&wire))?;
    let reason = bytes
        .is_empty()
        .then_some("the body was empty: the policy is to deny all");
    status(sandbox, reason)
}

/// Changes a policy, if that changes anything.
fn change(
    app: &App,
    sandbox: &Sandbox,
    make: impl FnOnce(&Policy) -> Result<Policy, PolicyError>,
) -> Result<(), Refusal> {
    let made = sandbox.with_guard(|guard| (make(&guard.policy), guard.version));
    let (made, version) = made.ok_or_else(gone)?;
    let policy = taken(made)?;
    if sandbox.with_guard(|guard| guard.policy == policy) == Some(true) {
        return Ok(());
    }
    let overlay = &app.operator.borrow().overlay;
    sandbox.set_policy(policy, version.saturating_add(1), overlay);
    Ok(())
}

/// A policy that can be taken, or why not.
///
/// # Errors
/// 413 for too many rules, else 400.
pub(super) fn taken(policy: Result<Policy, PolicyError>) -> Result<Policy, Refusal> {
    policy.map_err(|error| {
        let status = match error {
            PolicyError::TooMany(_) => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        Refusal::new(status, format!("{}: {}", error.code(), whole_story(&error)))
    })
}

fn gone() -> Refusal {
    Refusal::not_found("the sandbox is not guarded here any more")
}

/// What is in force, and how often it was set.
fn status(sandbox: &Sandbox, reason: Option<&str>) -> Result<Answer, Refusal> {
    let told = sandbox.with_guard(|guard: &Guard| {
        let mode = match guard.policy.mode() {
            Mode::DenyAll => "deny_all",
            Mode::AllowAll => "allow_all",
            Mode::Enforcing => "enforcing",
        };
        let status = PolicyStatus {
            status: "ok".to_owned(),
            mode: mode.to_owned(),
            enforcement_mode: "dns+nft".to_owned(),
            reason: reason.map(str::to_owned),
            policy: Some(guard.policy.to_wire()),
        };
        (status, guard.version)
    });
    let (status, version) = told.ok_or_else(gone)?;
    let mut answer = json(&status)?;
    let name = HeaderName::from_static(POLICY_VERSION);
    answer
        .headers_mut()
        .insert(name, HeaderValue::from(version));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_policy_may_be_missing() {
        for text in [
            "null",
            "{}",
            r#"{"egress":null}"#,
            r#"{"defaultAction":null}"#,
        ] {
            let sent: Option<Sent> = body::parse(text.as_bytes()).unwrap();
            assert!(sent.unwrap_or_default().egress.is_none(), "{text}");
        }
        let sent: Sent = body::parse(br#"{"egress":[{"target":"a.com"}]}"#).unwrap();
        let rules: Vec<NetworkRule> = sent.egress.into_iter().flatten().map(Into::into).collect();
        assert_eq!(rules[0].action, "");
        assert!(body::parse::<Sent>(br#"{"egress":[{"action":"deny"}]}"#).is_err());
    }
}
