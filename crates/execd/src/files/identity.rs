//! Does file work as another user.
//!
//! A thread takes the user's effective ids and groups for itself alone and ends with the job. Only
//! the effective user changes: that decides what files allow and drops the capabilities, while the
//! real one stays root, so processes of that user cannot signal the daemon through the thread.

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::fault::{Fault, Kind, text};
use crate::small_file;

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    uid: u32,
    gid: u32,
}

impl Identity {
    /// From the kernel's numbers.
    pub(crate) fn new(uid: u32, gid: u32) -> Self {
        Self { uid, gid }
    }

    /// From two path segments.
    ///
    /// # Errors
    /// When one is no id.
    pub(crate) fn parse(uid: &str, gid: &str) -> Result<Self, Fault> {
        let id = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse()
                .ok()
                .filter(|id| digits && *id != u32::MAX)
                .ok_or_else(|| {
                    Fault::new(
                        Kind::BadRequest,
                        "uid and gid are numbers from 0 to 4294967294",
                    )
                })
        };
        Ok(Self {
            uid: id(uid)?,
            gid: id(gid)?,
        })
    }

    /// The home directory of this user, where the sandbox knows one.
    pub(crate) fn home(self) -> Option<String> {
        let users = small_file::users();
        let home = users.user(self.uid)?.home;
        (!home.is_empty()).then(|| home.to_owned())
    }

    /// Makes this thread work as this user, for the rest of its life.
    ///
    /// # Errors
    /// When the kernel refuses, as for an id that the sandbox does not have.
    pub(crate) fn assume(self) -> Result<(), Fault> {
        let users = small_file::users();
        let mut groups = vec![self.gid];
        if let Some(user) = users.user(self.uid) {
            groups.extend(users.groups_of(&user));
        }
        let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
        let gid = Gid::from_raw(self.gid);
        let done = set_thread_groups(&groups)
            .and_then(|()| set_thread_res_gid(None, gid, None))
            .and_then(|()| set_thread_res_uid(None, Uid::from_raw(self.uid), None));
        done.map_err(|errno| {
            let Self { uid, gid } = self;
            let why = text(errno);
            let message = format!("cannot work as user {uid}, group {gid}: {why}");
            Fault::new(Kind::BadRequest, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_numbers() {
        assert_eq!(
            Identity::parse("0", "4294967294").unwrap().gid,
            u32::MAX - 1
        );
        for (uid, gid) in [
            ("4294967295", "0"),
            ("-1", "0"),
            ("+1", "0"),
            ("x", "0"),
            ("0", ""),
        ] {
            assert!(Identity::parse(uid, gid).is_err(), "{uid} {gid}");
        }
    }
}
