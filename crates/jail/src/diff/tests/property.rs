use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown};
use std::process::{Command, Stdio};

use barchan_testkit::seed::Seed;
use rustix::mount::MountAttrFlags;

use super::tars::unpack;
use super::*;

/// Names that are few, so that they meet, and of all kinds.
const NAMES: [&[u8]; 9] = [
    b"a",
    b"b",
    b"c.txt",
    b"two words",
    b"\"quoted\\",
    "\u{e9}\u{6587}".as_bytes(),
    b"\xff\xfe",
    b"tab\t",
    b".wh.b",
];

/// A stack of layers over an image, the lowest first.
struct Stack<'a> {
    home: &'a Path,
    layers: Vec<String>,
}

impl Stack<'_> {
    fn lower(&self) -> String {
        let mut all = vec![self.home.join("image")];
        all.extend(self.layers.iter().map(|layer| self.home.join(layer)));
        let shown: Vec<_> = all
            .iter()
            .rev()
            .map(|path| path.to_str().unwrap())
            .collect();
        shown.join(":")
    }

    /// The stack to be looked at. An overlay has two folders at least.
    fn view(&self) -> OwnedFd {
        let lower = format!(
            "{}:{}",
            self.lower(),
            self.home.join("empty").to_str().unwrap()
        );
        let options = [("lowerdir", lower.as_str()), ("userxattr", "")];
        crate::mounts::make("overlay", &options, MountAttrFlags::MOUNT_ATTR_RDONLY).unwrap()
    }

    /// The stack with a new layer on top, which is written to.
    fn grow(&mut self, name: &str, write: impl FnOnce(&Path)) {
        let at = |name: &str| self.home.join(name).to_str().unwrap().to_owned();
        let work = format!("{name}.work");
        for folder in [name, &work] {
            fs::create_dir(self.home.join(folder)).unwrap();
        }
        let (upper, work, lower) = (at(name), at(&work), self.lower());
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", &upper),
            ("workdir", &work),
            ("userxattr", ""),
        ];
        let mount = crate::mounts::make("overlay", &options, MountAttrFlags::empty()).unwrap();
        write(&path_of(&mount));
        self.layers.push(name.to_owned());
    }
}

fn path_of(folder: &OwnedFd) -> PathBuf {
    // Other programs find it there too.
    let pid = std::process::id();
    PathBuf::from(format!("/proc/{pid}/fd/{}/.", folder.as_raw_fd()))
}

/// Everything in a tree, without following links.
fn walked(root: &Path) -> Vec<PathBuf> {
    let mut all = vec![PathBuf::new()];
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        at += 1;
        let full = root.join(&path);
        if full == root.join("") || fs::symlink_metadata(&full).unwrap().is_dir() {
            let names = fs::read_dir(&full).unwrap();
            all.extend(names.map(|name| path.join(name.unwrap().file_name())));
        }
    }
    all
}

fn text(seed: &mut Seed) -> Vec<u8> {
    let lines = (0..seed.number() % 30).map(|_| format!("{}\n", seed.number() % 5));
    let mut text: Vec<u8> = lines.collect::<String>().into_bytes();
    match seed.number() % 8 {
        0 => text.push(0),
        1 => text.extend_from_slice("\u{e9}".as_bytes()),
        _ => {}
    }
    text
}

/// Does something to a tree. Much fails, as it may.
fn change(root: &Path, seed: &mut Seed, names: &[&[u8]]) {
    let all = walked(root);
    let mut any = || root.join(&all[seed.number() as usize % all.len()]);
    let (one, other) = (any(), any());
    let name = OsStr::from_bytes(names[seed.number() as usize % names.len()]);
    let place = other.join(name);
    match seed.number() % 14 {
        0 | 1 => drop(fs::create_dir(&place)),
        2..=4 => drop(fs::write(&place, text(seed))),
        5 if !one.is_symlink() => drop(fs::write(&one, text(seed))),
        6 if one != root => {
            drop(fs::remove_file(&one).or_else(|_| fs::remove_dir_all(&one)));
        }
        // A folder that goes and comes again hides what was in it.
        7 if one != root && fs::remove_dir_all(&one).is_ok() => {
            fs::create_dir(&one).unwrap();
            drop(fs::write(one.join(name), text(seed)));
        }
        8 => drop(fs::rename(&one, &place)),
        9 => drop(symlink(format!("to{}", seed.number() % 3), &place)),
        10 if !one.is_symlink() => {
            let mode = Mode::from_raw_mode(0o700 | (seed.number() % 64) as u32);
            let _ = rustix::fs::chmod(&one, mode);
        }
        11 => drop(std::os::unix::fs::lchown(
            &one,
            Some(seed.number() as u32 % 3),
            None,
        )),
        12 if !one.is_symlink() => {
            let value = [b'0' + (seed.number() % 3) as u8];
            let _ = rustix::fs::setxattr(&one, "user.note", &value, XattrFlags::empty());
        }
        // Written as it is.
        13 if one.is_file() && !one.is_symlink() => {
            let same = fs::read(&one).unwrap();
            fs::write(&one, same).unwrap();
        }
        _ => drop(chown(root, None, Some(seed.number() as u32 % 3))),
    }
}

/// What a path is, and what of it is compared.
#[derive(Debug, PartialEq, Eq)]
struct Thing {
    kind: char,
    mode: u32,
    owner: (u32, u32),
    content: Vec<u8>,
    note: Option<Vec<u8>>,
}

fn things(root: &Path) -> BTreeMap<Vec<u8>, Thing> {
    let thing = |path: PathBuf| {
        let at = root.join(&path);
        let at = if path.as_os_str().is_empty() {
            root.to_owned()
        } else {
            at
        };
        let found = fs::symlink_metadata(&at).unwrap();
        let (kind, content) = match found.file_type() {
            kind if kind.is_dir() => ('d', Vec::new()),
            kind if kind.is_symlink() => {
                ('l', fs::read_link(&at).unwrap().into_os_string().into_vec())
            }
            kind if kind.is_file() => ('f', fs::read(&at).unwrap()),
            kind => panic!("{at:?}: {}", kind.is_char_device()),
        };
        let mut note = Vec::with_capacity(64);
        let buffer = rustix::buffer::spare_capacity(&mut note);
        let has_note = kind != 'l' && rustix::fs::getxattr(&at, "user.note", buffer).is_ok();
        let name = [b"/", path.as_os_str().as_bytes()].concat();
        let thing = Thing {
            kind,
            mode: found.mode() & 0o7777,
            owner: (found.uid(), found.gid()),
            content,
            note: has_note.then_some(note),
        };
        (name, thing)
    };
    walked(root).into_iter().map(thing).collect()
}

/// What differs between two trees, found by looking at all of them.
fn expected(old: &BTreeMap<Vec<u8>, Thing>, new: &BTreeMap<Vec<u8>, Thing>) -> Vec<String> {
    let mut all = Vec::new();
    for path in old
        .keys()
        .chain(new.keys().filter(|path| !old.contains_key(*path)))
    {
        let shown = Name(path.clone());
        let (one, other) = match (old.get(path), new.get(path)) {
            (Some(one), Some(other)) => (one, other),
            (Some(_), None) => {
                all.push(format!("deleted {shown}"));
                continue;
            }
            (None, _) => {
                all.push(format!("added {shown}"));
                continue;
            }
        };
        let is_same_kind = one.kind == other.kind;
        let content = if one.kind == 'l' {
            " target"
        } else {
            " content"
        };
        let parts: Vec<&str> = [
            (" type", !is_same_kind),
            (content, is_same_kind && one.content != other.content),
            (" mode", one.mode != other.mode),
            (" owner", one.owner != other.owner),
            (" xattr", is_same_kind && one.note != other.note),
        ]
        .iter()
        .filter_map(|(part, differs)| differs.then_some(*part))
        .collect();
        if !parts.is_empty() {
            all.push(format!("changed {shown}{}", parts.concat()));
        }
    }
    all.sort();
    all
}

/// Applies all diffs to the old files, and compares what comes of it with the new ones.
fn check_patched(found: &[Change], old: &BTreeMap<Vec<u8>, Thing>, new: &BTreeMap<Vec<u8>, Thing>) {
    let place = tempfile::tempdir().unwrap();
    let with_diff = || found.iter().filter(|change| change.diff.is_some());
    let at = |change: &Change| {
        place
            .path()
            .join(OsString::from_vec(change.path.0[1..].to_vec()))
    };
    for change in with_diff() {
        fs::create_dir_all(at(change).parent().unwrap()).unwrap();
        if let Some(old) = old.get(&change.path.0) {
            fs::write(at(change), &old.content).unwrap();
        }
    }
    let diffs: String = with_diff()
        .filter_map(|change| change.diff.clone())
        .collect();
    let patch = place.path().join("\n.patch");
    fs::write(&patch, &diffs).unwrap();
    let mut applied = Command::new("patch");
    applied
        .args(["-p1", "--batch", "--fuzz=0", "--silent", "-d"])
        .arg(place.path());
    let outcome = applied
        .stdin(fs::File::open(&patch).unwrap())
        .stdout(Stdio::piped())
        .output();
    let outcome = outcome.unwrap();
    let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.status.success(), "{told}\n{diffs}");
    for change in with_diff() {
        let content = new.get(&change.path.0).map(|new| new.content.clone());
        assert_eq!(fs::read(at(change)).ok(), content, "{}", change.path);
    }
}

/// Unpacks a tar of the changes over a copy of the old view, and compares what comes of it with the
/// new one.
fn check_unpacked(old: &OwnedFd, new: &OwnedFd, layers: &[OwnedFd]) {
    let mut tar = Vec::new();
    let limits = Limits::default();
    let names = (layers, Names::OfImages);
    tar_of_changes(old.as_fd(), new.as_fd(), names, &limits, &mut tar).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let mut copying = Command::new("cp");
    copying
        .arg("-a")
        .arg(path_of(old))
        .arg(copy.path().join("tree"));
    assert!(copying.status().unwrap().success());
    let tree = copy.path().join("tree");
    unpack(&tar, &tree);
    // An image has no word for what is called like a mark.
    let spoken = |tree: &Path| {
        let mut all = things(tree);
        all.retain(|path, _| !path.windows(5).any(|it| it == b"/.wh."));
        all
    };
    assert_eq!(spoken(&tree), spoken(&path_of(new)));
}

#[test]
fn what_is_told_is_what_differs_between_real_stacks() {
    if !is_root() {
        // Only root mounts an overlay without a namespace of its own.
        return;
    }
    let mut seed = Seed::from_env();
    let has_patch = Command::new("patch")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    let mut told = 0;
    for round in 0..12 {
        // The last one stands for a name that is gone in the tar of an image, so most do without.
        let names = &NAMES[..NAMES.len() - usize::from(round % 4 != 0)];
        let home = tempfile::tempdir().unwrap();
        for folder in ["image", "empty"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        for _ in 0..60 {
            change(&home.path().join("image"), &mut seed, names);
        }
        // Two branches of a common beginning.
        let mut stacks = ["old", "new"].map(|name| {
            (
                name,
                Stack {
                    home: home.path(),
                    layers: vec![],
                },
            )
        });
        let common = seed.number() % 3;
        for number in 0..common {
            let name = format!("both{number}");
            let [(_, old), (_, new)] = &mut stacks;
            old.grow(&name, |root| {
                (0..15).for_each(|_| change(root, &mut seed, names))
            });
            new.layers.push(name);
        }
        for (side, stack) in &mut stacks {
            for number in 0..seed.number() % 4 {
                let changes = 1 + seed.number() % 15;
                let write = |root: &Path| (0..changes).for_each(|_| change(root, &mut seed, names));
                stack.grow(&format!("{side}{number}"), write);
            }
        }
        let [(_, old), (_, new)] = &stacks;
        let differing = old
            .layers
            .iter()
            .chain(&new.layers)
            .filter(|name| !name.starts_with("both"));
        let layers: Vec<_> = differing
            .map(|name| opened(&home.path().join(name)))
            .collect();
        let views = [old.view(), new.view()];
        let most = Limits::default();
        let (found, summary) = compared(&views[0], &views[1], &layers, &most).unwrap();
        let (old, new) = (things(&path_of(&views[0])), things(&path_of(&views[1])));
        let mut lines = lines(&found);
        lines.sort();
        assert_eq!(lines, expected(&old, &new));
        assert_eq!(summary.cut, None);
        told += lines.len();
        check_unpacked(&views[0], &views[1], &layers);
        if has_patch {
            check_patched(&found, &old, &new);
        }
    }
    assert!(told > 10, "{told}");
}
