//! Which user the server runs as when root starts it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, bail};
use barchan_wire::local;

/// The user that is looked for when the settings name none.
const NAME: &str = "barchan";
/// One of these is taken where there is no such user. No account has them: they are given out by
/// neither distributions nor systemd.
const NUMBERS: Range<u32> = 60_600..61_100;
/// The accounts of this host.
const ACCOUNTS: &str = "/etc/passwd";

/// A user of this host, and the group of the same number or of its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user that the setting `server.user` means; `None` for root itself. Where it is left out and
/// there is no account, each state directory has a number of its own, which stays.
pub(super) fn find(setting: Option<&str>, state: &Path) -> Result<Option<User>> {
    let accounts = fs::read_to_string(ACCOUNTS).unwrap_or_default();
    choose(setting, &accounts, || number_of(state))
}

/// Who has the server's folder already, else one by where the state directory is.
fn number_of(state: &Path) -> u32 {
    let has = state.join(local::SERVER_FOLDER).symlink_metadata();
    match has.map(|found| found.uid()) {
        Ok(owner) if NUMBERS.contains(&owner) => owner,
        _ => {
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            let count = u64::from(NUMBERS.end - NUMBERS.start);
            NUMBERS.start + u32::try_from(hasher.finish() % count).unwrap_or_default()
        }
    }
}

fn choose(
    setting: Option<&str>,
    accounts: &str,
    unnamed: impl FnOnce() -> u32,
) -> Result<Option<User>> {
    let user = match (setting, account(setting.unwrap_or(NAME), accounts)) {
        (_, Some(user)) => user,
        (None, None) => numbered(unnamed()),
        (Some(text), None) => match text.parse() {
            Ok(number) => numbered(number),
            Err(_) => bail!(
                "server.user: there is no user `{text}` in {ACCOUNTS}; name one that is there, or \
                 a number"
            ),
        },
    };
    // System calls take this number for "leave it as it is", or have no number besides it.
    if [user.uid, user.gid].contains(&u32::MAX) {
        bail!("server.user: {} means nobody: name another user", u32::MAX);
    }
    Ok((user.uid != 0).then_some(user))
}

fn numbered(number: u32) -> User {
    User {
        uid: number,
        gid: number,
    }
}

/// The account of this name. The file itself is read, because nothing else must run as root here.
fn account(name: &str, accounts: &str) -> Option<User> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let mut number = || fields.next()?.parse().ok();
        let _password: Option<u32> = number();
        Some(User {
            uid: number()?,
            gid: number()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::chown;

    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\nweb:x:33:34::/:/bin/false\n";

    #[test]
    fn a_user_is_a_name_a_number_or_the_usual_one() {
        let user = |uid, gid| Some(User { uid, gid });
        let with_own = format!("{ACCOUNTS}barchan:x:900:901::/:/bin/false\n");
        for (setting, accounts, expected) in [
            (None, ACCOUNTS, user(60_700, 60_700)),
            (None, with_own.as_str(), user(900, 901)),
            (Some("web"), ACCOUNTS, user(33, 34)),
            (Some("4000"), ACCOUNTS, user(4000, 4000)),
            (Some("root"), ACCOUNTS, None),
            (Some("0"), ACCOUNTS, None),
            (None, "", user(60_700, 60_700)),
        ] {
            let chosen = choose(setting, accounts, || 60_700).unwrap();
            assert_eq!(chosen, expected, "{setting:?}");
        }
        let odd = format!("{ACCOUNTS}odd:x:4294967295:1::/:/\nodder:x:1:4294967295::/:/\n");
        for setting in [
            "nobody-here",
            "",
            "-1",
            "4294967295",
            "4294967296",
            "web:x",
            "odd",
            "odder",
        ] {
            let error = choose(Some(setting), &odd, || 0).unwrap_err().to_string();
            assert!(error.contains("server.user"), "{setting}: {error}");
        }
    }

    #[test]
    fn each_state_directory_has_a_number_that_stays() {
        let home = tempfile::tempdir().unwrap();
        let numbers: BTreeSet<u32> = (0..20)
            .map(|at| number_of(&home.path().join(at.to_string())))
            .collect();
        assert!(numbers.iter().all(|number| NUMBERS.contains(number)));
        assert!(numbers.len() > 10, "{numbers:?}");
        if rustix::process::geteuid().is_root() {
            let state = home.path().join("state");
            let other = NUMBERS.start + (number_of(&state) + 1 - NUMBERS.start) % 500;
            fs::create_dir_all(state.join(local::SERVER_FOLDER)).unwrap();
            chown(state.join(local::SERVER_FOLDER), Some(other), None).unwrap();
            assert_eq!(number_of(&state), other);
        }
    }
}
