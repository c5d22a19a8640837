//! Pure. What an archive brings, and what is said of it.

/// Bits of a mode that lend the rights of an owner or group, and the sticky one.
pub(super) const LENDING: u32 = 0o7000;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, with where it leads.
    Symlink(Vec<u8>),
    /// One more name of a file: of the item at this place in the list.
    Name(usize),
    /// A device, pipe or socket, or what no name was found for.
    Special,
    /// Says that a name is gone.
    Gone,
    /// Says that all is gone from a folder but what the archive brings.
    Emptied,
}

/// One entry below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its path below the folder of the host, without dots; empty for that folder itself.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes, holes included.
    pub size: u64,
    /// Its mode.
    pub mode: u32,
    /// When it was changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Whether it may go.
    pub verdict: Verdict,
    /// Which frame of the archive has its content.
    pub(super) frame: u64,
}

/// What an approval is of, beside a path: whoever approved a file has not approved a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sort {
    /// A file or folder.
    Plain,
    /// A file whose mode lends rights.
    SetId,
    /// A symbolic link.
    Link,
    /// That the name is gone.
    Gone,
}

impl Sort {
    /// All that are told from what is plain by a word before the path.
    pub const NAMED: [Self; 3] = [Self::SetId, Self::Link, Self::Gone];

    /// That word; none for what is plain.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::SetId => Some("set_id"),
            Self::Link => Some("link"),
            Self::Gone => Some("gone"),
        }
    }
}

impl Item {
    /// What an approval of it is of.
    #[must_use]
    pub fn sort(&self) -> Sort {
        match self.kind {
            Kind::Symlink(_) => Sort::Link,
            Kind::Gone | Kind::Emptied => Sort::Gone,
            Kind::File | Kind::Name(_) if self.mode & LENDING != 0 => Sort::SetId,
            _ => Sort::Plain,
        }
    }
}

/// What the review says of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Plain,
    /// It goes if somebody approves.
    Held(Vec<Reason>),
    /// It never goes.
    Refused(Reason),
}

impl Verdict {
    pub(super) fn of(reasons: Vec<Reason>) -> Self {
        match reasons.is_empty() {
            true => Self::Plain,
            false => Self::Held(reasons),
        }
    }

    /// Why it does not go without more ado.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        match self {
            Self::Plain => &[],
            Self::Held(reasons) => reasons,
            Self::Refused(reason) => std::slice::from_ref(reason),
        }
    }
}

/// Who obeys a name without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Git and its like.
    Git,
    /// What runs hooks of a repository.
    Hooks,
    /// A service that builds what is pushed.
    Service,
    /// Editors.
    Editor,
    /// Coding agents.
    Agent,
    /// Shells and tools when they start.
    StartUp,
    /// What sets the environment or picks versions of tools in a folder.
    Environment,
    /// Package managers and build tools.
    Packages,
    /// Python's interpreter and its tests.
    Python,
    /// What holds or takes keys.
    Secrets,
}

/// Why an entry is held or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It lends its owner's or group's rights, or is sticky.
    SetId,
    /// It has capabilities of its own.
    Capabilities,
    /// Somebody obeys it without being asked.
    Obeyed(Topic),
    /// It is a link that may lead out of the folder.
    LeadsOut,
    /// It is a link to what somebody obeys without being asked.
    LeadsTo(Topic),
    /// It is one more name of what is held itself.
    SecondName,
    /// What is to be removed has something in it that somebody obeys.
    Holds(Topic),
    /// What is to be removed has another file system in it.
    Mounted,
    /// It is a device, pipe or socket.
    Special,
    /// Its name cannot be one below the folder.
    BadName(&'static str),
    /// It lies beneath what is no folder.
    Beneath,
    /// It is one more name of a file that the archive does not have.
    NoSource,
    /// The root itself is no folder any more.
    RootGone,
}

impl Topic {
    fn code(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Hooks => "hooks",
            Self::Service => "ci",
            Self::Editor => "editor",
            Self::Agent => "agent",
            Self::StartUp => "start_up",
            Self::Environment => "environment",
            Self::Packages => "packages",
            Self::Python => "python",
            Self::Secrets => "secrets",
        }
    }

    fn who(self) -> &'static str {
        match self {
            Self::Git => "version control obeys it",
            Self::Hooks => "hooks of a repository run it",
            Self::Service => "a build service obeys it",
            Self::Editor => "editors obey it",
            Self::Agent => "coding agents obey it",
            Self::StartUp => "shells or tools read it when they start",
            Self::Environment => "it sets the environment or picks tools",
            Self::Packages => "package managers or build tools obey it",
            Self::Python => "Python runs it unasked",
            Self::Secrets => "it holds or takes keys",
        }
    }
}

impl Reason {
    /// A word for programs, which never changes.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::SetId => "set_id",
            Self::Capabilities => "capabilities",
            Self::Obeyed(topic) => topic.code(),
            Self::LeadsOut => "link_leads_out",
            Self::LeadsTo(_) => "link_to_held",
            Self::SecondName => "name_of_held",
            Self::Holds(_) => "holds_held",
            Self::Mounted => "mounted",
            Self::Special => "special",
            Self::BadName(_) => "bad_name",
            Self::Beneath => "beneath_no_folder",
            Self::NoSource => "no_source",
            Self::RootGone => "root_gone",
        }
    }

    /// The reason in words.
    #[must_use]
    pub fn text(self) -> String {
        let text = match self {
            Self::SetId => "it lends rights (set-id or sticky)",
            Self::Capabilities => "it has capabilities, which stay behind",
            Self::Obeyed(topic) => topic.who(),
            Self::LeadsOut => "it is a link that may lead out of the folder",
            Self::LeadsTo(topic) => {
                return format!("it is a link; where it leads, {}", topic.who());
            }
            Self::SecondName => "it is one more name of a file that does not go",
            Self::Holds(topic) => return format!("of something in it, {}", topic.who()),
            Self::Mounted => "another file system is mounted in it",
            Self::Special => "it is a device, pipe or socket",
            Self::BadName(why) => why,
            Self::Beneath => "it lies beneath what is no folder",
            Self::NoSource => "it is one more name of a file that is not in the archive",
            Self::RootGone => "the root is no folder any more",
        };
        text.to_owned()
    }
}
