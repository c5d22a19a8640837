//! Archives that mean well and such as do not, brought to a folder.

mod fuzz;
mod hostile;
mod removal;

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use tar::{EntryType, Header};
use tempfile::TempDir;

use super::*;
use crate::unpack::UnpackLimits;

const LIMITS: UnpackLimits = UnpackLimits {
    entries_max: 1000,
    bytes_max: 1 << 20,
};

/// One entry as bytes: kind, name, link, mode, content.
fn entry(kind: EntryType, name: &str, link: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(7);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let filling = content.len().next_multiple_of(512) - content.len();
    [header.as_bytes(), content, &vec![0; filling]].concat()
}

/// A file whose content is its name.
fn file(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", 0o644, name.as_bytes())
}

fn folder(name: &str) -> Vec<u8> {
    entry(EntryType::Directory, name, "", 0o750, b"")
}

fn link(name: &str, to: &str) -> Vec<u8> {
    entry(EntryType::Symlink, name, to, 0o777, b"")
}

fn second(name: &str, first: &str) -> Vec<u8> {
    entry(EntryType::Link, name, first, 0o644, b"")
}

fn gone(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name, "", 0o644, b"")
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

fn wish(root: Option<&str>) -> Wish {
    Wish {
        root: root.map(|root| root.as_bytes().to_vec()),
        context: Vec::new(),
        limits: LIMITS,
    }
}

fn approved(paths: &[&str]) -> Consent {
    Consent {
        approved: paths.iter().map(|path| approval(path)).collect(),
        ..Consent::default()
    }
}

/// A path, or `gone:path` and its like.
fn approval(text: &str) -> (Sort, Vec<u8>) {
    let named = Sort::NAMED.into_iter().find_map(|sort| {
        let rest = text.strip_prefix(sort.word()?)?.strip_prefix(':')?;
        Some((sort, rest.as_bytes().to_vec()))
    });
    named.unwrap_or((Sort::Plain, text.as_bytes().to_vec()))
}

const ALL: fn() -> Consent = || Consent {
    is_for_all: true,
    may_remove: true,
    ..Consent::default()
};

/// A folder of the host with something beside it.
struct Host {
    home: TempDir,
    folder: PathBuf,
}

impl Host {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::write(home.path().join("outside"), "untouched").unwrap();
        Self { home, folder }
    }

    fn with(self, files: &[&str]) -> Self {
        for file in files {
            let path = self.folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "host").unwrap();
        }
        self
    }

    fn plan(&self, bytes: &[u8], root: Option<&str>, consent: &Consent) -> Plan {
        let review = review(&mut Cursor::new(bytes), wish(root)).unwrap();
        Plan::new(review, &Target::open(&self.folder).unwrap(), consent).unwrap()
    }

    fn apply(&self, plan: &mut Plan, bytes: &[u8]) {
        let target = Target::open(&self.folder).unwrap();
        plan.apply(&mut Cursor::new(bytes), &target, &|| false)
            .unwrap();
        assert_eq!(fs::read_dir(self.home.path()).unwrap().count(), 2);
        let outside = fs::read(self.home.path().join("outside")).unwrap();
        assert_eq!(outside, b"untouched");
    }

    /// Brings an archive, and says what became of its entries.
    fn bring(&self, entries: &[Vec<u8>], consent: &Consent) -> Vec<String> {
        let bytes = archive(entries);
        let mut plan = self.plan(&bytes, Some("/"), consent);
        self.apply(&mut plan, &bytes);
        told(&plan)
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    fn mode(&self, name: &str) -> u32 {
        let found = fs::symlink_metadata(self.folder.join(name)).unwrap();
        found.permissions().mode() & 0o7777
    }
}

/// `path: fate reasons` for each entry worth telling.
fn told(plan: &Plan) -> Vec<String> {
    let line = |line: &&Line| {
        let path = String::from_utf8_lossy(&line.item.path);
        let fate = match &line.fate {
            Fate::New => "new".to_owned(),
            Fate::Replaces => "replaces".to_owned(),
            Fate::Removes(count) => format!("removes {count}"),
            Fate::Nothing => "nothing".to_owned(),
            Fate::Held => "held".to_owned(),
            Fate::Refused => "refused".to_owned(),
            Fate::Unasked(count) => format!("unasked {count}"),
            Fate::Blocked(_) => "blocked".to_owned(),
        };
        let reasons = line.item.verdict.reasons().iter();
        let reasons: String = reasons.map(|it| format!(" {}", it.code())).collect();
        format!("{path}: {fate}{reasons}")
    };
    plan.told().iter().map(line).collect()
}

#[test]
fn what_is_plain_comes_and_what_is_held_waits_for_approval() {
    let entries = [
        folder("src/"),
        file("src/a"),
        file("b"),
        link("l", "src/a"),
        file(".envrc"),
        folder(".git/"),
        folder(".git/hooks/"),
        file(".git/hooks/pre-commit"),
        entry(EntryType::Regular, "su", "", 0o4755, b"x"),
        link("out", "/etc/passwd"),
    ];
    let host = Host::new().with(&["b"]);
    assert_eq!(
        host.bring(&entries, &approved(&[".envrc", "src", ".git"])),
        [
            ".envrc: new environment",
            ".git/hooks/pre-commit: held git",
            "b: replaces",
            "l: new",
            "out: held link_leads_out",
            "src/a: new",
            "su: held set_id",
        ]
    );
    assert_eq!(host.read("l").as_deref(), Some("src/a"));
    assert_eq!(host.read("b").as_deref(), Some("b"));
    assert_eq!((host.mode("src"), host.mode("b")), (0o750, 0o644));
    let modified = |name| fs::metadata(host.folder.join(name)).unwrap().mtime();
    assert_eq!((modified("src"), modified("b")), (7, 7));
    assert!(!host.folder.join("out").is_symlink());
    assert_eq!(host.read(".git/hooks/pre-commit"), None);
    let all = host.bring(&entries, &ALL());
    assert!(all.iter().all(|line| !line.contains(": held")), "{all:?}");
    assert_eq!(host.mode("su"), 0o4755);
    assert!(host.read(".git/hooks/pre-commit").is_some());
    assert!(host.folder.join("out").is_symlink());
}

#[test]
fn an_approval_is_of_what_was_shown() {
    let content = |mode| entry(EntryType::Regular, ".bashrc", "", mode, b"x");
    for (what, entries, approval) in [
        ("a file", vec![content(0o644)], ".bashrc"),
        ("a program", vec![content(0o755)], ".bashrc"),
        ("set-id", vec![content(0o4755)], "set_id:.bashrc"),
        ("a link", vec![link(".bashrc", "a")], "link:.bashrc"),
        ("a link out", vec![link(".bashrc", "/a")], "link:.bashrc"),
        (
            "a second name",
            vec![file("a"), second(".bashrc", "a")],
            ".bashrc",
        ),
        ("gone", vec![gone(".wh..bashrc")], "gone:.bashrc"),
    ] {
        for other in [".bashrc", "set_id:.bashrc", "link:.bashrc", "gone:.bashrc"] {
            let consent = Consent {
                may_remove: true,
                ..approved(&[other])
            };
            let told = Host::new().with(&[".bashrc"]).bring(&entries, &consent);
            let is_held = told.iter().any(|line| line.starts_with(".bashrc: held"));
            assert_eq!(is_held, other != approval, "{what} as {other}: {told:?}");
        }
    }
}

#[test]
fn the_root_is_the_workspace_if_there_is_one() {
    let entries = [
        folder("./"),
        folder("etc/"),
        file("etc/passwd"),
        folder("workspace/"),
        file("workspace/a"),
        file("workspaces"),
    ];
    for (entries, root, expected_root, paths, outside) in [
        (&entries[..], None, "/workspace", &["a"][..], 3),
        (&entries[1..3], None, "/", &["etc", "etc/passwd"], 0),
        (&entries[..], Some("/etc/"), "/etc", &["passwd"], 3),
        (&entries[..], Some("etc"), "/etc", &["passwd"], 3),
        (&entries[..], Some("/nowhere"), "/nowhere", &[], 5),
        (&[link("workspace", "/etc")], None, "/", &["workspace"], 0),
    ] {
        let bytes = archive(entries);
        let review = review(&mut Cursor::new(&bytes), wish(root)).unwrap();
        assert_eq!(review.root_path(), expected_root.as_bytes());
        let found = review.items.iter().map(|item| item.path.as_slice());
        let expected = paths.iter().map(|path| path.as_bytes());
        assert!(found.eq(expected), "{:?}", review.items);
        assert_eq!(review.outside, outside, "{root:?}");
    }
    let up = review(&mut Cursor::new(archive(&[])), wish(Some("/a/../b")));
    assert!(matches!(up, Err(UnpackError::Refused(..))));
}

#[test]
fn names_of_one_file_stay_names_of_one_file() {
    let entries = [
        folder("cache/"),
        file("cache/a"),
        folder("workspace/"),
        second("workspace/one", "cache/a"),
        second("workspace/two", "cache/a"),
        file("workspace/b"),
        second("workspace/c", "workspace/b"),
        second("workspace/d", "workspace/c"),
        second("workspace/x", "cache/none"),
    ];
    let bytes = archive(&entries);
    let host = Host::new().with(&["c", "x"]);
    let mut plan = host.plan(&bytes, None, &ALL());
    host.apply(&mut plan, &bytes);
    assert_eq!(
        told(&plan),
        [
            "b: new",
            "c: replaces",
            "d: new",
            "one: new",
            "two: new",
            "x: refused no_source"
        ]
    );
    let file_of = |name| fs::metadata(host.folder.join(name)).unwrap().ino();
    assert_eq!(host.read("two").as_deref(), Some("cache/a"));
    assert_eq!(file_of("one"), file_of("two"));
    assert_eq!(host.read("d").as_deref(), Some("workspace/b"));
    assert!(file_of("b") == file_of("c") && file_of("c") == file_of("d"));
    // Once more, when all are names of one file already.
    let mut plan = host.plan(&bytes, None, &ALL());
    host.apply(&mut plan, &bytes);
    assert_eq!(fs::read_dir(&host.folder).unwrap().count(), 6);
}

#[test]
fn folders_that_are_there_keep_their_modes_and_holes_stay_holes() {
    let entries = [
        folder("d/"),
        entry(EntryType::Regular, "d/large", "", 0o666, &[0; 700_000]),
        entry(EntryType::Directory, "closed/", "", 0o500, b""),
        file("closed/a"),
    ];
    let host = Host::new().with(&["d/x"]);
    fs::set_permissions(host.folder.join("d"), PermissionsExt::from_mode(0o711)).unwrap();
    let told = host.bring(&entries, &Consent::default());
    assert_eq!(told, ["closed/a: new", "d/large: new"]);
    assert_eq!((host.mode("d"), host.mode("closed")), (0o711, 0o500));
    let large = fs::metadata(host.folder.join("d/large")).unwrap();
    assert_eq!((large.len(), large.mode() & 0o777), (700_000, 0o644));
    assert!(large.blocks() * 512 < 700_000);
}
