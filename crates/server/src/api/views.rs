//! Pure. Records as callers see them.

use std::collections::BTreeMap;

use barchan_wire::lifecycle::{
    Allocation, ChangeReport, CreatedSandbox, EndReport, HappeningReport, Image, Platform, Report,
    Sandbox, State as Word, Status,
};

use crate::access::Tenant;
use crate::lifecycle::state::{EndKind, Happening, Record, State};
use crate::lifecycle::{Change, word};

/// The extension that names limits which this host does not enforce.
const UNENFORCED: &str = "barchan.unenforced";

/// A sandbox as `GET` and lists show it.
pub(super) fn sandbox(record: &Record) -> Sandbox {
    let CreatedSandbox {
        id,
        status,
        created_at,
        expires_at,
        entrypoint,
        platform,
        metadata,
        extensions,
    } = created(record);
    let origin = record.origin();
    let snapshot_id = origin.snapshot.as_ref().map(ToString::to_string);
    let image = snapshot_id.is_none().then(|| Image::new(&origin.image));
    Sandbox {
        id,
        status,
        created_at,
        expires_at,
        entrypoint,
        image,
        snapshot_id,
        platform,
        metadata,
        extensions,
        allocation: origin.pool.as_deref().map(Allocation::from_pool),
    }
}

/// A sandbox as the answer to its create shows it.
pub(super) fn created(record: &Record) -> CreatedSandbox {
    let origin = record.origin();
    let platform = origin
        .platform
        .clone()
        .map(|(os, arch)| Platform { os, arch });
    CreatedSandbox {
        id: record.id().clone(),
        status: status(record),
        created_at: record.created_at(),
        expires_at: record.expires_at(),
        entrypoint: origin.entrypoint.clone(),
        platform,
        metadata: Some(record.metadata().clone()),
        extensions: extensions(record),
    }
}

fn status(record: &Record) -> Status {
    let (state, reason, message) = match record.state() {
        State::Creating => (
            Word::Pending,
            "CONTAINER_STARTING",
            "The sandbox is being made.",
        ),
        State::Running => (Word::Running, "CONTAINER_RUNNING", "The sandbox runs."),
        State::Paused => (Word::Paused, "CONTAINER_PAUSED", "The sandbox is paused."),
        State::Parked => (
            Word::Paused,
            "CONTAINER_PAUSED",
            "The sandbox is paused to disk: its files are kept, and it starts anew with them.",
        ),
        State::Removing(_) => (
            Word::Stopping,
            "CONTAINER_REMOVING",
            "The sandbox is being removed.",
        ),
        State::Ended(end) => {
            let state = match end.kind {
                EndKind::Success => Word::Terminated,
                EndKind::Failure => Word::Failed,
            };
            (state, end.reason.as_str(), end.message.as_str())
        }
    };
    Status {
        state,
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_at: Some(record.since()),
    }
}

fn extensions(record: &Record) -> Option<BTreeMap<String, String>> {
    let mut extensions = record.origin().extensions.clone();
    if !record.unenforced().is_empty() {
        extensions.insert(UNENFORCED.to_owned(), record.unenforced().join(","));
    }
    (!extensions.is_empty()).then_some(extensions)
}

/// A sandbox and what happened to it.
pub(super) fn report(record: &Record, is_gone: bool) -> Report {
    let tenant = record.origin().tenant.as_deref();
    let end = match record.state() {
        State::Ended(end) => Some(EndReport {
            cause: end.cause.as_str().to_owned(),
            is_success: end.kind == EndKind::Success,
            message: end.message.clone(),
            at: record.since(),
        }),
        _ => None,
    };
    Report {
        sandbox: sandbox(record),
        tenant: tenant.map(|owner| Tenant::name_of(owner).to_owned()),
        is_gone,
        end,
        history: record.history().iter().map(happening).collect(),
    }
}

fn happening(happening: &Happening) -> HappeningReport {
    HappeningReport {
        at: happening.at,
        event: happening.what.as_str().to_owned(),
        message: happening.message.clone(),
    }
}

/// A change as it is told to watchers.
pub(super) fn change(change: &Change) -> ChangeReport {
    let record = &change.record;
    let cause = record.end().map(|end| end.cause.as_str().to_owned());
    ChangeReport {
        sandbox_id: record.id().clone(),
        happening: happening(&change.happening),
        state: word(record.state()).to_owned(),
        cause,
        metadata: record.metadata().clone(),
    }
}
