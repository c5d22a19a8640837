//! Pure. Why a tool did not do what was asked, with codes that clients decide by.

use std::fmt;

use barchan_wire::execd::fs::refusal::{Code, Refusal};
use rustix::io::Errno;

use crate::fault::{Fault, Kind};

/// A refusal without details.
pub(crate) fn refused(code: Code, message: impl Into<String>) -> Refusal {
    Refusal {
        code,
        message: message.into(),
        count: None,
        suggestion: None,
    }
}

/// What the kernel refused to do to a path.
pub(crate) fn of_path(errno: Errno, tried: &str, path: impl fmt::Display) -> Refusal {
    let message = Fault::of_path(errno, tried, path).message;
    let code = match errno {
        Errno::NOENT => Code::PathNotFound,
        Errno::NOTDIR => Code::NotADirectory,
        Errno::ISDIR => Code::IsADirectory,
        Errno::EXIST => Code::AlreadyExists,
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY => Code::PermissionDenied,
        Errno::NAMETOOLONG | Errno::INVAL | Errno::LOOP | Errno::ILSEQ => Code::InvalidPath,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Code::NoSpace,
        _ => Code::Failed,
    };
    refused(code, message)
}

/// The refusal that a fault of the plain file routes is here.
pub(crate) fn of_fault(fault: Fault) -> Refusal {
    let code = match fault.kind {
        Kind::BadRequest | Kind::MissingQuery | Kind::BadContent | Kind::BadMetadata => {
            Code::InvalidRequest
        }
        Kind::TooLarge => Code::TooLarge,
        Kind::BadFile => Code::InvalidPath,
        Kind::NoFile => Code::PathNotFound,
        Kind::Conflict => Code::AlreadyExists,
        Kind::Forbidden => Code::PermissionDenied,
        Kind::Full => Code::NoSpace,
        _ => Code::Failed,
    };
    refused(code, fault.message)
}
