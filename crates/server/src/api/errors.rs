//! What is answered when a request is refused.

use barchan_runtime::{ArchiveFault, ErrorKind, VolumeFault};
use barchan_wire::lifecycle::{ErrorBody, ValidationBody, code};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response};

use super::approvals::by_approval;
use super::pages;
use super::reply::{self, Body};
use crate::access::{QuotaError, Resource};
use crate::egress::ProgramError;
use crate::lifecycle::{GuardError, LayerError, LifecycleError, SnapshotError, Verb};
use crate::vault::VaultError;

/// A refusal: its status, its body and at most one header of its own.
#[derive(Debug)]
pub(super) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: u16,
    body: Refused,
    header: Option<(HeaderName, HeaderValue)>,
    is_repeated: bool,
    /// Whether it is told as text alone, as callers of port 18080 expect.
    is_plain: bool,
}

#[derive(Debug)]
enum Refused {
    Error(ErrorBody),
    Invalid(ValidationBody),
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        let body = Refused::Error(ErrorBody::new(code, message));
        Self(Box::new(Inner {
            status,
            body,
            header: None,
            is_repeated: false,
            is_plain: false,
        }))
    }

    /// A parameter that is understood but not acceptable.
    pub(super) fn parameter(message: impl Into<String>) -> Self {
        Self::new(400, code::INVALID_PARAMETER, message)
    }

    /// No such route. Older clients look for `detail`, newer ones for code and message.
    pub(super) fn no_route() -> Self {
        Self::detailed(404, code::NOT_FOUND, "there is no such route", "Not Found")
    }

    /// The route has other methods.
    pub(super) fn method(allowed: &[Method]) -> Self {
        let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
        let names = names.join(", ");
        let message = format!("this route takes {names}");
        let mut refusal = Self::detailed(
            405,
            code::METHOD_NOT_ALLOWED,
            &message,
            "Method Not Allowed",
        );
        refusal.0.header = HeaderValue::from_str(&names)
            .ok()
            .map(|names| (ALLOW, names));
        refusal
    }

    /// Says that another try may succeed after so many seconds.
    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.header = Some((RETRY_AFTER, HeaderValue::from(seconds.max(1))));
        self
    }

    /// Says that the same was refused before, and noted.
    pub(super) fn repeated(mut self) -> Self {
        self.0.is_repeated = true;
        self
    }

    /// The same, told as text alone.
    pub(super) fn plain(mut self) -> Self {
        self.0.is_plain = true;
        self
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.0.is_repeated
    }

    /// What it says.
    pub(super) fn message(&self) -> String {
        match &self.0.body {
            Refused::Error(body) => body.message.clone(),
            Refused::Invalid(body) => serde_json::to_string(body).unwrap_or_default(),
        }
    }

    fn detailed(status: u16, code: &str, message: &str, detail: &str) -> Self {
        let mut body = ErrorBody::new(code, message);
        body.detail = Some(detail.to_owned());
        Self(Box::new(Inner {
            status,
            body: Refused::Error(body),
            header: None,
            is_repeated: false,
            is_plain: false,
        }))
    }

    /// No sandbox can have this id.
    pub(super) fn no_sandbox(id: &str) -> Self {
        let shown: String = id.chars().take(64).collect();
        Self::new(
            404,
            code::SANDBOX_NOT_FOUND,
            format!("there is no sandbox {shown}"),
        )
    }

    pub(super) fn status(&self) -> u16 {
        self.0.status
    }

    pub(super) fn code(&self) -> &str {
        match &self.0.body {
            Refused::Error(body) => &body.code,
            Refused::Invalid(_) => "",
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let Inner {
            status,
            body,
            header,
            is_repeated: _,
            is_plain,
        } = *self.0;
        let mut response = match &body {
            Refused::Error(body) if is_plain => reply::text(status, body.message.clone()),
            Refused::Error(body) => reply::json(status, body),
            Refused::Invalid(body) => reply::json(status, body),
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl Refusal {
    /// The same as a page for people.
    pub(super) fn into_page(self) -> Response<Body> {
        let (code, message) = match &self.0.body {
            Refused::Error(body) => (body.code.as_str(), body.message.as_str()),
            Refused::Invalid(_) => return self.into_response(),
        };
        let page = pages::page(self.0.status, code, message);
        let mut response = reply::html(self.0.status, page);
        let policy = HeaderValue::from_static(pages::POLICY);
        response.headers_mut().extend([
            (CONTENT_SECURITY_POLICY, policy),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ]);
        response.headers_mut().extend(self.0.header);
        response
    }
}

impl From<ValidationBody> for Refusal {
    fn from(body: ValidationBody) -> Self {
        Self(Box::new(Inner {
            status: 422,
            body: Refused::Invalid(body),
            header: None,
            is_repeated: false,
            is_plain: false,
        }))
    }
}

impl From<LifecycleError> for Refusal {
    fn from(error: LifecycleError) -> Self {
        let (status, code) = match &error {
            LifecycleError::NotFound(_) | LifecycleError::Gone { .. } => {
                (404, code::SANDBOX_NOT_FOUND)
            }
            LifecycleError::NotRunning { .. } => (409, code::NOT_RUNNING),
            LifecycleError::NotPaused { .. } => (409, code::NOT_PAUSED),
            LifecycleError::NeverExpires(_) => (409, code::INVALID_EXPIRATION),
            LifecycleError::Past => (400, code::INVALID_EXPIRATION),
            LifecycleError::TooManyLabels(_) => (400, code::INVALID_METADATA_LABEL),
            LifecycleError::Full(_) => (429, code::LIMIT_REACHED),
            LifecycleError::Quota(error) => by_quota(error),
            LifecycleError::NoPool(_) => (404, code::POOL_NOT_FOUND),
            LifecycleError::PoolExists(_) => (409, code::POOL_ALREADY_EXISTS),
            LifecycleError::PoolExhausted { .. } => (429, code::POOL_CAPACITY_EXHAUSTED),
            LifecycleError::Runtime { verb, source } => by_runtime(*verb, source.kind),
            LifecycleError::Snapshot(error) => by_snapshot(error),
            LifecycleError::Layer(error) => by_layer(error),
            LifecycleError::Guard(error) => by_guard(error),
            LifecycleError::Approval(error) => by_approval(error),
            LifecycleError::Vault(error) => by_vault(error),
            LifecycleError::Volumes(source) => by_runtime(Verb::Reach, source.kind),
            LifecycleError::Late { verb, .. } => (500, failed(*verb)),
            LifecycleError::Store(_) => (500, code::INTERNAL_ERROR),
            LifecycleError::Stopping => (503, code::RUNTIME_UNAVAILABLE),
        };
        if status >= 500 {
            tracing::error!(%error, code, "a request failed");
        }
        let refusal = Self::new(status, code, error.to_string());
        match (status, error) {
            (_, LifecycleError::PoolExhausted { wait, .. }) => refusal.retry_after(wait.as_secs()),
            (429 | 503, _) => refusal.retry_after(1),
            _ => refusal,
        }
    }
}

fn by_quota(error: &QuotaError) -> (u16, &'static str) {
    match error {
        QuotaError::Unbounded { .. } => (400, code::INVALID_PARAMETER),
        QuotaError::Over { resource, .. } => {
            let code = match resource {
                Resource::Sandboxes => code::QUOTA_SANDBOXES,
                Resource::Cpu => code::QUOTA_CPU,
                Resource::Memory => code::QUOTA_MEMORY,
                Resource::Disk => code::QUOTA_DISK,
                Resource::Snapshots => code::QUOTA_SNAPSHOTS,
            };
            // Not 429: clients would only ask again.
            (403, code)
        }
    }
}

fn by_runtime(verb: Verb, kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::NotFound => (404, code::SANDBOX_NOT_FOUND),
        ErrorKind::UnknownImage => (500, code::IMAGE_PULL_FAILED),
        ErrorKind::Unsupported if verb == Verb::Create => (400, code::INVALID_PARAMETER),
        ErrorKind::Unsupported => (501, code::API_NOT_SUPPORTED),
        ErrorKind::Conflict => (409, code::NOT_RUNNING),
        ErrorKind::Busy => (409, code::LAYER_SANDBOX_BUSY),
        ErrorKind::Unavailable => (500, code::RUNTIME_UNAVAILABLE),
        ErrorKind::Volume(fault) => by_volume(verb, fault),
        ErrorKind::UnknownSnapshot => (409, code::SNAPSHOT_INVALID_RESTORE_CONFIG),
        ErrorKind::Archive(fault) => by_archive(fault),
        ErrorKind::UnknownLayer => (404, code::LAYER_NOT_FOUND),
        ErrorKind::LayerFailed => (500, code::LAYER_FAILED),
        ErrorKind::StartFailed | ErrorKind::SnapshotFailed | ErrorKind::Internal => {
            (500, failed(verb))
        }
    }
}

fn by_archive(fault: ArchiveFault) -> (u16, &'static str) {
    match fault {
        ArchiveFault::Invalid => (400, code::SNAPSHOT_IMAGE_INVALID),
        ArchiveFault::Platform => (400, code::SNAPSHOT_IMAGE_PLATFORM),
        ArchiveFault::TooLarge => (413, code::SNAPSHOT_IMAGE_TOO_LARGE),
        ArchiveFault::BrokenOff => (400, code::SNAPSHOT_IMAGE_BROKEN_OFF),
        ArchiveFault::OnHost => (409, code::SNAPSHOT_STANDS_ON_HOST),
        ArchiveFault::Unspeakable => (409, code::SNAPSHOT_NOT_EXPORTABLE),
        ArchiveFault::Busy => (429, code::SNAPSHOT_TRANSFERS_BUSY),
    }
}

fn by_transfer(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Archive(fault) => by_archive(fault),
        ErrorKind::UnknownSnapshot => (409, code::SNAPSHOT_INVALID_RESTORE_CONFIG),
        ErrorKind::Unavailable => (500, code::RUNTIME_UNAVAILABLE),
        ErrorKind::Unsupported => (501, code::SNAPSHOT_NOT_IMPLEMENTED),
        _ => (500, code::SNAPSHOT_TRANSFER_FAILED),
    }
}

fn by_snapshot(error: &SnapshotError) -> (u16, &'static str) {
    match error {
        SnapshotError::NotFound(_) => (404, code::SNAPSHOT_NOT_FOUND),
        SnapshotError::NotReady { .. } => (409, code::SNAPSHOT_NOT_READY),
        SnapshotError::BeingTaken(_) => (409, code::SNAPSHOT_INVALID_STATE),
        SnapshotError::Source { .. } => (409, code::SNAPSHOT_INVALID_SOURCE_STATE),
        SnapshotError::InUse { .. } => (409, code::SNAPSHOT_DELETE_CONFLICT),
        SnapshotError::Full(_) => (429, code::SNAPSHOT_LIMIT_REACHED),
        SnapshotError::Unsupported => (501, code::SNAPSHOT_NOT_IMPLEMENTED),
        SnapshotError::Transfer(source) => by_transfer(source.kind),
        SnapshotError::TooDeep(_) => (409, code::SNAPSHOT_PREFLIGHT_FAILED),
    }
}

fn by_guard(error: &GuardError) -> (u16, &'static str) {
    match error {
        GuardError::Absent | GuardError::Program(ProgramError::Unreached(_)) => {
            (502, code::BACKEND_CONNECTION_FAILED)
        }
        GuardError::Program(ProgramError::Late(_)) => (504, code::BACKEND_TIMEOUT),
        GuardError::Program(_) | GuardError::Unknown => (502, code::BACKEND_RESPONSE_FAILED),
    }
}

/// Callers of port 18080 see the status and the words; the code is for the audit log.
fn by_vault(error: &VaultError) -> (u16, &'static str) {
    match error {
        VaultError::NotAsked | VaultError::Unguarded | VaultError::Unreadable => {
            (412, code::API_NOT_SUPPORTED)
        }
        VaultError::Overheard => (426, code::BAD_REQUEST),
        VaultError::Absent | VaultError::NoSuch { .. } => (404, code::NOT_FOUND),
        VaultError::Exists | VaultError::Revision { .. } | VaultError::Taken { .. } => {
            (409, code::BAD_REQUEST)
        }
        VaultError::Invalid(_) => (400, code::INVALID_PARAMETER),
        VaultError::Sealing(_) => (500, code::INTERNAL_ERROR),
    }
}

fn by_layer(error: &LayerError) -> (u16, &'static str) {
    match error {
        LayerError::NotFound(_) => (404, code::LAYER_NOT_FOUND),
        LayerError::Held { .. } => (409, code::LAYER_FILES_IN_USE),
        LayerError::Busy(_) => (409, code::LAYER_SANDBOX_BUSY),
        LayerError::Crowded(_) => (429, code::LAYER_COMPARISONS_BUSY),
        LayerError::Unsupported => (501, code::LAYER_NOT_SUPPORTED),
        LayerError::Runtime(source) => match source.kind {
            ErrorKind::Conflict => (409, code::NOT_RUNNING),
            ErrorKind::Busy => (409, code::LAYER_SANDBOX_BUSY),
            ErrorKind::Archive(ArchiveFault::Busy) => (429, code::LAYER_COMPARISONS_BUSY),
            ErrorKind::Unsupported => (501, code::LAYER_NOT_SUPPORTED),
            ErrorKind::Unavailable => (500, code::RUNTIME_UNAVAILABLE),
            _ => (500, code::LAYER_FAILED),
        },
    }
}

fn by_volume(verb: Verb, fault: VolumeFault) -> (u16, &'static str) {
    match fault {
        VolumeFault::HostPathNotAllowed => (400, code::HOST_PATH_NOT_ALLOWED),
        VolumeFault::HostPathNotFound => (400, code::HOST_PATH_NOT_FOUND),
        VolumeFault::HostPathNotMade => (500, code::HOST_PATH_CREATE_FAILED),
        VolumeFault::NotFound if verb == Verb::Create => (400, code::VOLUME_NOT_FOUND),
        VolumeFault::NotFound => (404, code::VOLUME_NOT_FOUND),
        VolumeFault::Unusable => (500, code::VOLUME_UNUSABLE),
        VolumeFault::InUse => (409, code::VOLUME_IN_USE),
        VolumeFault::SubPath => (400, code::INVALID_SUB_PATH),
        VolumeFault::MountPath => (400, code::INVALID_MOUNT_PATH),
    }
}

fn failed(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => code::START_FAILED,
        Verb::Pause => code::PAUSE_FAILED,
        Verb::Resume => code::RESUME_FAILED,
        Verb::Delete => code::DELETE_FAILED,
        Verb::Reach | Verb::Logs => code::INTERNAL_ERROR,
    }
}
