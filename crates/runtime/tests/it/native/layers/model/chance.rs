//! Which change comes next, by chance, so that it can be made.

use barchan_testkit::seed::Seed;

use super::change::{Change, What};
use super::tree::{Kind, Place, Tree};

/// Few names, so that they are used again and again; what other programs give a meaning to is
/// among them.
const NAMES: [&[u8]; 10] = [
    b"a",
    b"b",
    b"c",
    b"odd \n name",
    b"\xff\xfe\x80",
    b".wh.a",
    b".wh..wh..opq",
    b"-rf",
    b"back\\slash",
    &[b'n'; 255],
];

const MODES: [u32; 8] = [0o644, 0o600, 0o000, 0o755, 0o4755, 0o2711, 0o1777, 0o7777];
const FOLDER_MODES: [u32; 5] = [0o755, 0o700, 0o2775, 0o1777, 0o000];
const ATTRIBUTES: [&[u8]; 3] = [b"user.note", b"user.\xc3\xa9", b"user.overla.y"];
const TARGETS: [&[u8]; 4] = [b"a", b"../../..", b"/nowhere\n\xff", b"/proc/self/root/etc"];
/// Ids beside those of root and of nobody.
const IDS: [u32; 4] = [0, 1, 1000, 65_535];

/// Folders inside folders, and names in all.
const DEPTH_MAX: usize = 5;
const NAMES_MAX: usize = 90;
/// Largest file that is not sparse, and the largest of all.
const DATA_MAX: u64 = 9000;
const SIZE_MAX: u64 = 150_000;

/// Where something new can be.
fn free(seed: &mut Seed, tree: &Tree, places: &[Place]) -> Option<Vec<u8>> {
    let is_folder = |place: &&Place| {
        place.depth < DEPTH_MAX && matches!(tree.node(place.id).kind, Kind::Folder(_))
    };
    let folder = pick(seed, places.iter().filter(is_folder))?;
    let name = NAMES[seed.number() as usize % NAMES.len()];
    let is_taken = tree.names(folder.id).any(|(taken, _)| taken == name);
    (!is_taken).then(|| [&folder.path[..], b"/", name].concat())
}

fn pick<'a>(seed: &mut Seed, of: impl Iterator<Item = &'a Place>) -> Option<&'a Place> {
    let all: Vec<_> = of.collect();
    let at = seed.number() as usize % all.len().max(1);
    all.get(at).copied()
}

fn one<T: Copy>(seed: &mut Seed, of: &[T]) -> T {
    of[seed.number() as usize % of.len()]
}

fn data(seed: &mut Seed) -> Vec<u8> {
    let size = match seed.number() % 4 {
        0 => 0,
        1 => seed.number() % DATA_MAX,
        _ => seed.number() % 40,
    };
    let first = seed.number();
    (0..size)
        .map(|at| (first.wrapping_mul(at | 1) >> 7) as u8)
        .collect()
}

/// The next change, unless chance wants what cannot be.
pub(super) fn change(seed: &mut Seed, tree: &Tree) -> Option<Change> {
    let places = tree.paths();
    let is_full = places.len() > NAMES_MAX;
    let (path, what) = match seed.number() % 20 {
        0..=5 if is_full => removal(seed, tree, &places)?,
        0..=5 => (free(seed, tree, &places)?, addition(seed)),
        6 => {
            let old = file(seed, tree, &places)?;
            (
                old.path.clone(),
                What::Link {
                    new: free(seed, tree, &places)?,
                },
            )
        }
        7..=10 => (file(seed, tree, &places)?.path.clone(), rewriting(seed)),
        11..=13 => attribute(seed, tree, &places)?,
        14..=16 => removal(seed, tree, &places)?,
        _ => moving(seed, tree, &places)?,
    };
    // With parts of seconds, and some before 1970.
    let time = (seed.number() % 4_000_000_000_000_000_000) as i64 - 1_000_000_000_000_000_000;
    Some(Change { path, what, time })
}

fn addition(seed: &mut Seed) -> What {
    match seed.number() % 10 {
        0..=3 => What::Mkdir {
            mode: one(seed, &FOLDER_MODES),
        },
        4 => What::Symlink {
            target: one(seed, &TARGETS).to_vec(),
        },
        5 => What::Fifo {
            mode: one(seed, &MODES),
        },
        _ => What::Create {
            mode: one(seed, &MODES),
            data: data(seed),
        },
    }
}

fn file<'a>(seed: &mut Seed, tree: &Tree, places: &'a [Place]) -> Option<&'a Place> {
    let is_file = |place: &&Place| matches!(tree.node(place.id).kind, Kind::File(_));
    pick(seed, places.iter().filter(is_file))
}

fn rewriting(seed: &mut Seed) -> What {
    match seed.number() % 4 {
        0 => What::Append { data: data(seed) },
        1 => What::Truncate {
            size: (seed.number() % (DATA_MAX * 2)) as usize,
        },
        2 => What::Write {
            offset: (seed.number() % 5000) as usize,
            data: data(seed),
        },
        _ => What::Write {
            offset: (seed.number() % SIZE_MAX) as usize,
            data: data(seed),
        },
    }
}

fn attribute(seed: &mut Seed, tree: &Tree, places: &[Place]) -> Option<(Vec<u8>, What)> {
    let place = pick(seed, places.iter())?;
    let node = tree.node(place.id);
    let has_mode = !matches!(node.kind, Kind::Link(_));
    let has_attributes = matches!(node.kind, Kind::File(_) | Kind::Folder(_));
    let what = match seed.number() % 6 {
        0 | 1 if has_mode => What::Chmod {
            mode: one(seed, &MODES),
        },
        2 => What::Chown {
            owner: (one(seed, &IDS), one(seed, &IDS)),
        },
        3 | 4 if has_attributes => {
            let name = one(seed, &ATTRIBUTES).to_vec();
            match node.attributes.contains_key(&name) && seed.number().is_multiple_of(2) {
                true => What::Unset { name },
                false => What::Set {
                    name,
                    value: data(seed).into_iter().take(200).collect(),
                },
            }
        }
        _ => What::Touch,
    };
    Some((place.path.clone(), what))
}

fn removal(seed: &mut Seed, tree: &Tree, places: &[Place]) -> Option<(Vec<u8>, What)> {
    let place = pick(seed, places.iter().filter(|place| place.depth > 0))?;
    let what = match tree.node(place.id).kind {
        Kind::Folder(ref names) if names.is_empty() => What::Rmdir,
        Kind::Folder(_) => What::Clear,
        _ => What::Unlink,
    };
    Some((place.path.clone(), what))
}

/// To a free name, or over what gives way: a file over a file, a folder over an empty one.
fn moving(seed: &mut Seed, tree: &Tree, places: &[Place]) -> Option<(Vec<u8>, What)> {
    let old = pick(seed, places.iter().filter(|place| place.depth > 0))?;
    let is_folder = matches!(tree.node(old.id).kind, Kind::Folder(_));
    let gives_way = |place: &&Place| {
        let is_same = matches!(&tree.node(place.id).kind, Kind::Folder(_)) == is_folder;
        let is_empty = tree.names(place.id).next().is_none();
        place.depth > 0 && place.id != old.id && is_same && is_empty
    };
    let new = match seed.number() % 3 {
        0 => pick(seed, places.iter().filter(gives_way))?.path.clone(),
        _ => free(seed, tree, places)?,
    };
    let inside = [&old.path[..], b"/"].concat();
    (!new.starts_with(&inside)).then_some((old.path.clone(), What::Move { new }))
}
