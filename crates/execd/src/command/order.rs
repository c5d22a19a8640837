//! Pure. What a caller asks to be run, checked: nothing in it means "default" any more.

use std::time::Duration;

use barchan_jail::child::Ids;
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::execd::exec::ExecRequest;

use super::audience::Leave;
use crate::environment::{Variables, is_variable};
use crate::fault::{Fault, Kind};
use crate::users::Users;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A script for the shell.
    Script(String),
    /// A program and its arguments; never empty.
    Program(Vec<String>),
}

/// Who is to run it, and what its environment says about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    /// For the kernel.
    pub(crate) ids: Ids,
    /// `HOME`, and `USER` and `LOGNAME` where the user has a name.
    pub(crate) variables: Variables,
}

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// What.
    pub(crate) what: What,
    /// Where, not expanded yet; `None`: where the sandbox starts.
    pub(crate) cwd: Option<String>,
    /// For how long at most.
    pub(crate) timeout: Option<Duration>,
    /// As whom; `None`: as the daemon.
    pub(crate) person: Option<Person>,
    /// Environment on top of the sandbox's.
    pub(crate) variables: Variables,
    /// The id it is to have; `None`: any.
    pub(crate) id: Option<String>,
    /// Whether it reads input that is sent later; else its input is at its end.
    pub(crate) stdin: bool,
    /// Whether both streams of output go through one pipe, which keeps their order.
    pub(crate) merges: bool,
    /// What becomes of it when its callers leave.
    pub(crate) leave: Leave,
    /// Whether it is a hook of the sandbox, and nobody's request.
    pub(crate) is_hook: bool,
}

/// Longer limits are as good as this one: a hundred years.
const TIMEOUT_S_MAX: f64 = 3.2e9;

/// Checks a request. `users` is asked only when the request names a user.
///
/// # Errors
/// What in the request makes no sense.
pub(crate) fn check(
    request: CommandRequest,
    users: impl FnOnce() -> Users,
) -> Result<Order, Fault> {
    let what = match (request.command, request.argv) {
        (Some(script), None) if script.trim().is_empty() => return bad("`command` is empty"),
        (Some(script), None) if script.contains('\0') => return bad("`command` holds a NUL byte"),
        (Some(script), None) => What::Script(script),
        (None, Some(argv)) if argv.first().is_none_or(String::is_empty) => {
            return bad("`argv` needs a program as its first element");
        }
        (None, Some(argv)) if argv.iter().any(|argument| argument.contains('\0')) => {
            return bad("`argv` holds a NUL byte");
        }
        (None, Some(argv)) => What::Program(argv),
        _ => return bad("give exactly one of `command` and `argv`"),
    };
    let odd = request
        .envs
        .iter()
        .find(|(name, value)| !is_variable(name, value));
    if let Some((name, _)) = odd {
        return bad(format!(
            "{name:?} in `envs` is no variable: names consist of letters, digits, _ . and -, and \
             values hold no NUL byte"
        ));
    }
    Ok(Order {
        what,
        cwd: request.cwd.filter(|cwd| !cwd.is_empty()),
        timeout: timeout(request.timeout)?,
        person: person(request.uid, request.gid, users)?,
        variables: request.envs,
        id: None,
        stdin: false,
        merges: request.background,
        leave: match request.background {
            true => Leave::Stay,
            false => Leave::Kill,
        },
        is_hook: false,
    })
}

/// Checks a request for a stream of frames.
///
/// # Errors
/// What in the request makes no sense.
pub(crate) fn check_exec(
    request: ExecRequest,
    users: impl FnOnce() -> Users,
) -> Result<Order, Fault> {
    if request.command.background {
        return bad("`background` is called `detach` here");
    }
    Ok(Order {
        stdin: request.stdin,
        leave: match request.detach {
            true => Leave::Stay,
            false => Leave::Linger,
        },
        ..check(request.command, users)?
    })
}

impl Order {
    /// The same, to be run once under an id of the caller's, who may come back for it at any time.
    ///
    /// # Errors
    /// When the id is not of 32 lower-case hexadecimal digits.
    pub(crate) fn keyed(self, id: &str) -> Result<Self, Fault> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if id.len() != 32 || !id.bytes().all(digit) {
            return bad("the command's id must be 32 lower-case hexadecimal digits");
        }
        Ok(Self {
            id: Some(id.to_owned()),
            leave: Leave::Stay,
            ..self
        })
    }
}

fn bad<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(Kind::BadRequest, message))
}

/// A limit in milliseconds; 0 is none.
///
/// # Errors
/// When it is negative.
pub(crate) fn timeout(ms: Option<f64>) -> Result<Option<Duration>, Fault> {
    match ms {
        None => Ok(None),
        Some(ms) if ms < 0.0 => bad("`timeout` is negative; leave it out or 0 for no limit"),
        Some(ms) if ms > 0.0 => Ok(Some(Duration::from_secs_f64(
            (ms / 1000.0).min(TIMEOUT_S_MAX),
        ))),
        Some(_) => Ok(None),
    }
}

/// Who an id is. `users` is asked only when there is one.
///
/// # Errors
/// For ids that make no sense.
pub(crate) fn person(
    uid: Option<u32>,
    gid: Option<u32>,
    users: impl FnOnce() -> Users,
) -> Result<Option<Person>, Fault> {
    let uid = match (uid, gid) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return bad("`gid` needs `uid`"),
        (Some(u32::MAX), _) | (_, Some(u32::MAX)) => {
            return bad("4294967295 is nobody's id: to the kernel it means \"unchanged\"");
        }
        (Some(uid), _) => uid,
    };
    let users = users();
    let user = users.user(uid);
    let groups = match (&user, gid) {
        (_, Some(gid)) => vec![gid],
        (Some(user), None) => users.groups_of(user),
        // An unknown user gets a group of its own number, never that of root.
        (None, None) => vec![uid],
    };
    // Somebody without a home still needs a directory to write to.
    let home = user
        .as_ref()
        .map(|user| user.home)
        .filter(|home| !home.is_empty());
    let mut variables = Variables::from([("HOME".to_owned(), home.unwrap_or("/tmp").to_owned())]);
    if let Some(user) = &user {
        variables.insert("USER".to_owned(), user.name.to_owned());
        variables.insert("LOGNAME".to_owned(), user.name.to_owned());
    }
    let gid = groups.first().copied().unwrap_or(uid);
    Ok(Some(Person {
        ids: Ids { uid, gid, groups },
        variables,
    }))
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests;
