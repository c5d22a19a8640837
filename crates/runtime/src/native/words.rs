//! Pure. The launcher's words and the image store's in the runtime's, and back.

use barchan_jail::proto::{self, Failure, FailureKind, Status};
use barchan_jail::spec;
use serde::{Deserialize, Serialize};

use crate::image::ImageError;
use crate::{
    ArchiveFault, EndReason, ErrorKind, NamedVolume, Observed, Phase, RuntimeError, VolumeFault,
};

/// What the launcher keeps for us with each sandbox.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) image_digest: String,
}

pub(super) fn to_bind(bind: crate::image::Bind) -> spec::Bind {
    spec::Bind {
        source: bind.source,
        target: bind.target,
    }
}

pub(super) fn to_hook(hook: crate::Hook) -> barchan_jail::guest::Hook {
    barchan_jail::guest::Hook {
        name: hook.name,
        schedule: hook.schedule,
        argv: hook.argv,
        timeout_s: hook.timeout_s,
    }
}

/// The launcher's view in the runtime's words; `None` for a build, which is nobody's sandbox.
pub(super) fn observed(status: &Status) -> Option<Observed> {
    let note: Note = serde_json::from_str(&status.note).ok()?;
    Some(Observed {
        id: status.id.parse().ok()?,
        phase: match status.phase {
            proto::Phase::Running => Phase::Running,
            proto::Phase::Paused => Phase::Paused,
            proto::Phase::Parked => Phase::Parked,
            proto::Phase::Exited(code) => Phase::Ended(EndReason::Exit(code)),
            proto::Phase::Signalled(_) => Phase::Ended(EndReason::DaemonLost),
            proto::Phase::OutOfMemory => Phase::Ended(EndReason::Oom),
            proto::Phase::Unresponsive => Phase::Ended(EndReason::DaemonUnresponsive),
        },
        unenforced: status.unenforced.clone(),
        image_digest: note.image_digest,
    })
}

pub(super) fn from_volume(status: proto::VolumeStatus) -> NamedVolume {
    NamedVolume {
        name: status.name,
        size_bytes: status.size_bytes,
        used_bytes: status.used_bytes,
        sandboxes: status.sandboxes,
        deleted_with: status.owner,
    }
}

pub(super) fn from_failure(failure: Failure) -> RuntimeError {
    let kind = match failure.kind {
        FailureKind::NotFound => ErrorKind::NotFound,
        FailureKind::Conflict => ErrorKind::Conflict,
        FailureKind::Busy => ErrorKind::Busy,
        FailureKind::Unsupported => ErrorKind::Unsupported,
        FailureKind::Start => ErrorKind::StartFailed,
        FailureKind::Invalid => ErrorKind::Internal,
        FailureKind::HostPathNotAllowed => ErrorKind::Volume(VolumeFault::HostPathNotAllowed),
        FailureKind::HostPathNotFound => ErrorKind::Volume(VolumeFault::HostPathNotFound),
        FailureKind::HostPathNotMade => ErrorKind::Volume(VolumeFault::HostPathNotMade),
        FailureKind::VolumeNotFound => ErrorKind::Volume(VolumeFault::NotFound),
        FailureKind::VolumeUnusable => ErrorKind::Volume(VolumeFault::Unusable),
        FailureKind::VolumeInUse => ErrorKind::Volume(VolumeFault::InUse),
        FailureKind::VolumePath => ErrorKind::Volume(VolumeFault::SubPath),
        FailureKind::MountPath => ErrorKind::Volume(VolumeFault::MountPath),
        FailureKind::Image => ErrorKind::Archive(ArchiveFault::Invalid),
        FailureKind::Snapshot => ErrorKind::SnapshotFailed,
        FailureKind::Layer => ErrorKind::LayerFailed,
        FailureKind::LayerNotFound => ErrorKind::UnknownLayer,
    };
    RuntimeError::new(kind, failure.message)
}

pub(super) fn from_image(error: &ImageError) -> RuntimeError {
    let kind = match error {
        ImageError::Unknown { .. } => ErrorKind::UnknownImage,
        _ => ErrorKind::Internal,
    };
    RuntimeError::new(kind, error.to_string())
}

/// The launcher answered something else than was asked.
pub(super) fn unexpected(answer: &proto::Answer) -> RuntimeError {
    internal(&format!("the launcher answered {answer:?}"))
}

pub(super) fn internal(words: &str) -> RuntimeError {
    RuntimeError::new(ErrorKind::Internal, words)
}
