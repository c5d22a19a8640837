//! Which user the server runs as when root starts it.

use std::fs;

use anyhow::{Result, bail};

/// The user that is looked for when the settings name none.
const NAME: &str = "barchan";
/// Taken where there is no such user. No account has it: the numbers around it are given out by
/// neither distributions nor systemd.
const NUMBER: u32 = 61_100;
/// The accounts of this host.
const ACCOUNTS: &str = "/etc/passwd";

/// A user of this host, and the group of the same number or of its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user that the setting `server.user` means; `None` for root itself.
pub(super) fn find(setting: Option<&str>) -> Result<Option<User>> {
    let accounts = fs::read_to_string(ACCOUNTS).unwrap_or_default();
    choose(setting, &accounts)
}

fn choose(setting: Option<&str>, accounts: &str) -> Result<Option<User>> {
    let user = match (setting, account(setting.unwrap_or(NAME), accounts)) {
        (_, Some(user)) => user,
        (None, None) => numbered(NUMBER),
        (Some(text), None) => match text.parse() {
            Ok(number) => numbered(number),
            Err(_) => bail!(
                "server.user: there is no user `{text}` in {ACCOUNTS}; name one that is there, or \
                 a number"
            ),
        },
    };
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
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\nweb:x:33:34::/:/bin/false\n";

    #[test]
    fn a_user_is_a_name_a_number_or_the_usual_one() {
        let user = |uid, gid| Some(User { uid, gid });
        let with_own = format!("{ACCOUNTS}barchan:x:900:901::/:/bin/false\n");
        for (setting, accounts, expected) in [
            (None, ACCOUNTS, user(NUMBER, NUMBER)),
            (None, with_own.as_str(), user(900, 901)),
            (Some("web"), ACCOUNTS, user(33, 34)),
            (Some("4000"), ACCOUNTS, user(4000, 4000)),
            (Some("root"), ACCOUNTS, None),
            (Some("0"), ACCOUNTS, None),
            (None, "", user(NUMBER, NUMBER)),
        ] {
            let chosen = choose(setting, accounts).unwrap();
            assert_eq!(chosen, expected, "{setting:?}");
        }
        for setting in ["nobody-here", "", "-1", "4294967296", "web:x"] {
            let error = choose(Some(setting), ACCOUNTS).unwrap_err().to_string();
            assert!(error.contains("server.user"), "{setting}: {error}");
        }
    }
}
