//! Modes and owners.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use barchan_wire::execd::file::Permission;
use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chmod, chownat, fchmod, fchown};

use super::expand::escape;
use crate::fault::Fault;
use crate::users::Users;

/// What is to be set, in the kernel's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Permission bits.
    pub(crate) mode: Option<u32>,
    /// User.
    pub(crate) uid: Option<u32>,
    /// Group.
    pub(crate) gid: Option<u32>,
}

impl Rights {
    /// Resolves what a caller asks for. A name that the sandbox does not know changes nothing:
    /// clients name the users of usual images to all images.
    pub(crate) fn new(asked: &Permission, users: &Users) -> Self {
        Self {
            mode: asked.mode.map(|mode| mode.bits()).filter(|bits| *bits != 0),
            uid: asked.owner.as_deref().and_then(|name| users.uid(name)),
            gid: asked.group.as_deref().and_then(|name| users.gid(name)),
        }
    }

    /// Sets owner and group, then the mode, because a change of owner clears bits of it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn apply(self, path: &Path) -> Result<(), Fault> {
        let shown = || escape(path.as_os_str().as_bytes());
        if let Some((uid, gid)) = self.owner() {
            chownat(CWD, path, uid, gid, AtFlags::empty())
                .map_err(|errno| Fault::of_path(errno, "change the owner of", shown()))?;
        }
        if let Some(mode) = self.mode {
            chmod(path, Mode::from_raw_mode(mode))
                .map_err(|errno| Fault::of_path(errno, "change the mode of", shown()))?;
        }
        Ok(())
    }

    /// The same on an open file that is shown as this.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn apply_to(self, file: impl AsFd, shown: &str) -> Result<(), Fault> {
        if let Some((uid, gid)) = self.owner() {
            fchown(&file, uid, gid)
                .map_err(|errno| Fault::of_path(errno, "change the owner of", shown))?;
        }
        if let Some(mode) = self.mode {
            fchmod(&file, Mode::from_raw_mode(mode))
                .map_err(|errno| Fault::of_path(errno, "change the mode of", shown))?;
        }
        Ok(())
    }

    fn owner(self) -> Option<(Option<Uid>, Option<Gid>)> {
        if self.uid.is_none() && self.gid.is_none() {
            return None;
        }
        Some((self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_unknown_names_change_nothing() {
        let users = Users {
            passwd: "ann:x:7:7::/:\n".to_owned(),
            group: "staff:x:50:\n".to_owned(),
        };
        for (text, wanted) in [
            (
                r#"{"mode":644,"owner":"ann","group":"staff"}"#,
                (Some(0o644), Some(7), Some(50)),
            ),
            (
                r#"{"mode":0,"owner":"12","group":null}"#,
                (None, Some(12), None),
            ),
            (r#"{"owner":"nobody-here"}"#, (None, None, None)),
        ] {
            let rights = Rights::new(&serde_json::from_str(text).unwrap(), &users);
            assert_eq!((rights.mode, rights.uid, rights.gid), wanted, "{text}");
        }
    }
}
