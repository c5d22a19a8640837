//! Pure. What a caller asks to be run, checked: nothing in it means "default" any more.

use std::time::Duration;

use barchan_jail::child::Ids;
use barchan_wire::execd::command::CommandRequest;

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
    /// Whether the caller waits for the end.
    pub(crate) background: bool,
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
        background: request.background,
    })
}

fn bad<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(Kind::BadRequest, message))
}

fn timeout(ms: Option<f64>) -> Result<Option<Duration>, Fault> {
    match ms {
        None => Ok(None),
        Some(ms) if ms < 0.0 => bad("`timeout` is negative; leave it out or 0 for no limit"),
        Some(ms) if ms > 0.0 => Ok(Some(Duration::from_secs_f64(
            (ms / 1000.0).min(TIMEOUT_S_MAX),
        ))),
        Some(_) => Ok(None),
    }
}

fn person(
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
mod tests {
    use super::*;

    fn users() -> Users {
        Users {
            passwd: "ann:x:1000:1001::/home/ann:/bin/sh\n".to_owned(),
            group: "audio:x:29:ann\n".to_owned(),
        }
    }

    fn check_text(text: &str) -> Result<Order, Fault> {
        check(serde_json::from_str(text).unwrap(), users)
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        for (text, part) in [
            ("{}", "exactly one"),
            (r#"{"command":"a","argv":["a"]}"#, "exactly one"),
            (r#"{"command":"  "}"#, "empty"),
            (r#"{"command":"a\u0000b"}"#, "NUL"),
            (r#"{"argv":[]}"#, "program"),
            (r#"{"argv":["",""]}"#, "program"),
            (r#"{"argv":["a","\u0000"]}"#, "NUL"),
            (r#"{"command":"a","gid":1}"#, "`gid` needs `uid`"),
            (r#"{"command":"a","uid":4294967295}"#, "nobody"),
            (r#"{"command":"a","timeout":-1}"#, "negative"),
            (
                r#"{"command":"a","envs":{"X;touch pwn":"1"}}"#,
                "X;touch pwn",
            ),
            (r#"{"command":"a","envs":{"X":"\u0000"}}"#, "NUL"),
        ] {
            let fault = check_text(text).unwrap_err();
            assert_eq!(fault.kind, Kind::BadRequest);
            assert!(fault.message.contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn timeouts_are_milliseconds_of_any_kind() {
        for (timeout, wanted) in [
            ("null", None),
            ("0", None),
            ("0.0", None),
            ("1500.0", Some(Duration::from_millis(1500))),
            ("1", Some(Duration::from_millis(1))),
            ("1e12", Some(Duration::from_secs(1_000_000_000))),
            ("1e300", Some(Duration::from_secs(3_200_000_000))),
        ] {
            let order = check_text(&format!(r#"{{"command":"a","timeout":{timeout}}}"#));
            assert_eq!(order.unwrap().timeout, wanted, "{timeout}");
        }
    }

    #[test]
    fn a_person_comes_with_groups_and_a_home() {
        for (ids, uid, gid, groups, home) in [
            (r#""uid":1000"#, 1000, 1001, vec![1001, 29], "/home/ann"),
            (r#""uid":1000,"gid":5"#, 1000, 5, vec![5], "/home/ann"),
            (r#""uid":4242"#, 4242, 4242, vec![4242], "/tmp"),
        ] {
            let order = check_text(&format!(r#"{{"command":"a",{ids}}}"#)).unwrap();
            let person = order.person.unwrap();
            assert_eq!(person.ids, Ids { uid, gid, groups });
            assert_eq!(person.variables.get("HOME").map(String::as_str), Some(home));
        }
    }
}
