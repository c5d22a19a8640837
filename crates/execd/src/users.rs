//! Pure. Users and groups from the text of /etc/passwd and /etc/group: a static program has no name
//! services, and a sandbox's answers must not depend on its libraries.

/// A user of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User<'a> {
    /// Name.
    pub(crate) name: &'a str,
    /// Number.
    pub(crate) uid: u32,
    /// Number of the primary group.
    pub(crate) gid: u32,
    /// Home directory.
    pub(crate) home: &'a str,
}

/// The two tables.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// Text of /etc/passwd.
    pub(crate) passwd: String,
    /// Text of /etc/group.
    pub(crate) group: String,
}

impl Users {
    fn users(&self) -> impl Iterator<Item = User<'_>> {
        self.passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            let home = fields.nth(1).unwrap_or_default();
            Some(User {
                name,
                uid,
                gid,
                home,
            })
        })
    }

    /// Name, number and member list of every group.
    fn groups(&self) -> impl Iterator<Item = (&str, u32, &str)> {
        self.group.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            let gid = fields.nth(1)?.parse().ok()?;
            Some((name, gid, fields.next().unwrap_or_default()))
        })
    }

    /// The user of a number.
    pub(crate) fn user(&self, uid: u32) -> Option<User<'_>> {
        self.users().find(|user| user.uid == uid)
    }

    /// The number of a user given by name or number.
    pub(crate) fn uid(&self, name: &str) -> Option<u32> {
        let named = self
            .users()
            .find(|user| user.name == name)
            .map(|user| user.uid);
        named.or_else(|| number(name))
    }

    /// The number of a group given by name or number.
    pub(crate) fn gid(&self, name: &str) -> Option<u32> {
        let named = self
            .groups()
            .find(|group| group.0 == name)
            .map(|group| group.1);
        named.or_else(|| number(name))
    }

    /// The name of a user, or its number.
    pub(crate) fn user_name(&self, uid: u32) -> String {
        self.user(uid)
            .map_or_else(|| uid.to_string(), |user| user.name.to_owned())
    }

    /// The name of a group, or its number.
    pub(crate) fn group_name(&self, gid: u32) -> String {
        let named = self.groups().find(|group| group.1 == gid);
        named.map_or_else(|| gid.to_string(), |group| group.0.to_owned())
    }

    /// Every group that lists this user, the primary one first.
    pub(crate) fn groups_of(&self, user: &User<'_>) -> Vec<u32> {
        let listed = self.groups().filter(|(_, gid, members)| {
            *gid != user.gid && members.split(',').any(|member| member.trim() == user.name)
        });
        std::iter::once(user.gid)
            .chain(listed.map(|group| group.1))
            .collect()
    }
}

/// The all-ones number means "leave as it is" to the kernel and is nobody's.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != u32::MAX)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Users {
        Users {
            passwd:
                "root:x:0:0:root:/root:/bin/sh\n# note\nbroken\nann:x:1000:1000:Ann,,:/home/ann:\n\
                     bad:x:ten:1::/:\n"
                    .to_owned(),
            group: "root:x:0:\nann:x:1000:\naudio:x:29:bob,ann\nvideo:x:44:ann\nann2:x:7:annette\n"
                .to_owned(),
        }
    }

    #[test]
    fn names_and_numbers_are_found() {
        let users = users();
        for (name, uid) in [
            ("ann", Some(1000)),
            ("4242", Some(4242)),
            ("bad", None),
            ("", None),
        ] {
            assert_eq!(users.uid(name), uid, "{name}");
        }
        assert_eq!(users.uid("4294967295"), None);
        assert_eq!(users.gid("audio"), Some(29));
        assert_eq!(users.user_name(1000), "ann");
        assert_eq!(users.user_name(4242), "4242");
        assert_eq!(users.group_name(29), "audio");
    }

    #[test]
    fn a_user_has_the_groups_that_list_it() {
        let users = users();
        let ann = users.user(1000).unwrap();
        assert_eq!(ann.home, "/home/ann");
        assert_eq!(users.groups_of(&ann), [1000, 29, 44]);
    }
}
