//! A plain model of a tree of files, in memory, and what is seen of it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use rustix::fs::FileType;

/// Names of attributes and their values.
pub(super) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// The number of a file, folder or link.
pub(super) type Id = usize;

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder(BTreeMap<Vec<u8>, Id>),
    File(Arc<Vec<u8>>),
    Link(Vec<u8>),
    Pipe,
}

/// A file, folder or link, whatever names it has.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) modified: i64,
    pub(super) attributes: Attributes,
    /// It lies in a sealed layer or in the image. The first change through one of its names makes
    /// a copy of it that has that name alone: overlays keep no links of what lies below.
    pub(super) is_below: bool,
    /// It came up from there. In a user namespace overlays tell other numbers for further names of
    /// such a file, so which of them are one is not seen until it is sealed.
    pub(super) is_raised: bool,
}

/// What is seen of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) modified: i64,
    pub(super) size: u64,
    /// The first path, in order, that is the same file, if that can be seen.
    pub(super) first_name: Option<Vec<u8>>,
    pub(super) attributes: Attributes,
    /// As the agent spells it.
    pub(super) content: String,
}

/// All that is seen, by path.
pub(super) type View = BTreeMap<Vec<u8>, Seen>;

/// The pieces of a file as which it is told.
const BLOCK: usize = 4096;

/// The number of the root.
pub(super) const ROOT: Id = 0;

/// A tree. Its root has the few folders that are looked at, each by its whole path.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    nodes: BTreeMap<Id, Node>,
    next: Id,
}

impl Tree {
    /// What a sandbox begins with, as it is seen: all of it lies below.
    pub(super) fn of(view: &View) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: 0,
        };
        let mut ids: BTreeMap<&[u8], Id> = BTreeMap::new();
        for (path, seen) in view {
            let first_name = seen.first_name.as_deref().unwrap();
            if let Some(id) = ids.get(first_name).copied() {
                ids.insert(path, id);
            } else {
                ids.insert(path, tree.add(node_of(seen)));
            }
        }
        for (path, id) in ids.iter().filter(|(path, _)| path.len() > 1) {
            let at = path.iter().rposition(|byte| *byte == b'/').unwrap();
            let (above, name) = match ids.get(&path[..at]) {
                Some(above) => (*above, &path[at + 1..]),
                None => (ROOT, *path),
            };
            tree.names_mut(above).insert(name.to_vec(), *id);
        }
        tree
    }

    pub(super) fn add(&mut self, node: Node) -> Id {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        id
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[&id]
    }

    pub(super) fn node_mut(&mut self, id: Id) -> &mut Node {
        self.nodes.get_mut(&id).unwrap()
    }

    /// What a folder holds; nothing if it is none.
    pub(super) fn names(&self, id: Id) -> impl Iterator<Item = (&Vec<u8>, Id)> {
        let names = match &self.node(id).kind {
            Kind::Folder(names) => Some(names),
            _ => None,
        };
        names.into_iter().flatten().map(|(name, id)| (name, *id))
    }

    pub(super) fn names_mut(&mut self, id: Id) -> &mut BTreeMap<Vec<u8>, Id> {
        match &mut self.node_mut(id).kind {
            Kind::Folder(names) => names,
            other => panic!("{other:?} is no folder"),
        }
    }

    /// All but the root.
    pub(super) fn paths(&self) -> Vec<Place> {
        let mut found = Vec::new();
        let mut open = vec![(Vec::new(), ROOT, 0)];
        while let Some((path, above, depth)) = open.pop() {
            for (name, id) in self.names(above) {
                let path = match above {
                    ROOT => name.clone(),
                    _ => [&path[..], b"/", name].concat(),
                };
                open.push((path.clone(), id, depth + 1));
                found.push(Place { path, id, depth });
            }
        }
        found
    }

    /// How many names a file has.
    fn links(&self, id: Id) -> usize {
        let names = self.nodes.values().filter_map(|node| match &node.kind {
            Kind::Folder(names) => Some(names.values()),
            _ => None,
        });
        names.flatten().filter(|it| **it == id).count()
    }

    /// Before something is changed through a name: it comes up to where it can be. Its number.
    pub(super) fn raise(&mut self, above: Id, name: &[u8]) -> Id {
        let id = *self.names_mut(above).get(name).unwrap();
        let is_folder = matches!(self.node(id).kind, Kind::Folder(_));
        if is_folder || !self.node(id).is_below {
            return id;
        }
        let mut copy = self.node(id).clone();
        (copy.is_below, copy.is_raised) = (false, true);
        if self.links(id) == 1 {
            self.nodes.insert(id, copy);
            return id;
        }
        let new = self.add(copy);
        self.names_mut(above).insert(name.to_vec(), new);
        new
    }

    /// Takes a name away, and of a folder all that is in it.
    pub(super) fn remove(&mut self, above: Id, name: &[u8]) {
        let id = self.names_mut(above).remove(name).unwrap();
        let inner: Vec<Vec<u8>> = self.names(id).map(|(name, _)| name.clone()).collect();
        for name in inner {
            self.remove(id, &name);
        }
    }

    /// All that there is has been sealed.
    pub(super) fn seal(&mut self) {
        for node in self.nodes.values_mut() {
            (node.is_below, node.is_raised) = (true, false);
        }
    }

    /// What is seen of it.
    pub(super) fn view(&self) -> View {
        let mut paths = self.paths();
        paths.sort_by(|a, b| a.path.cmp(&b.path));
        let mut first_names: BTreeMap<Id, Vec<u8>> = BTreeMap::new();
        let mut view = View::new();
        view.insert(b"/".to_vec(), self.seen(ROOT, b"/".to_vec()));
        for Place { path, id, .. } in paths {
            let first = first_names.entry(id).or_insert_with(|| path.clone());
            let seen = self.seen(id, first.clone());
            view.insert(path, seen);
        }
        view
    }

    fn seen(&self, id: Id, first_name: Vec<u8>) -> Seen {
        let node = self.node(id);
        let (kind, size, content) = match &node.kind {
            Kind::Folder(_) => (FileType::Directory, 0, "-".to_owned()),
            Kind::File(data) => (FileType::RegularFile, data.len(), pieces(data)),
            Kind::Link(target) => (FileType::Symlink, target.len(), hex::encode(target)),
            Kind::Pipe => (FileType::Fifo, 0, "-".to_owned()),
        };
        Seen {
            kind,
            mode: node.mode,
            owner: node.owner,
            modified: node.modified,
            size: size as u64,
            content,
            attributes: node.attributes.clone(),
            first_name: (!node.is_raised).then_some(first_name),
        }
    }
}

/// Where something is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: Vec<u8>,
    pub(super) id: Id,
    /// Folders above it that are looked at.
    pub(super) depth: usize,
}

fn node_of(seen: &Seen) -> Node {
    let kind = match seen.kind {
        FileType::Directory => Kind::Folder(BTreeMap::new()),
        FileType::RegularFile => Kind::File(Arc::new(joined(seen))),
        FileType::Symlink => Kind::Link(hex::decode(&seen.content).unwrap()),
        FileType::Fifo => Kind::Pipe,
        other => panic!("no sandbox begins with a {other:?}"),
    };
    Node {
        kind,
        mode: seen.mode,
        owner: seen.owner,
        modified: seen.modified,
        attributes: seen.attributes.clone(),
        is_below: true,
        is_raised: false,
    }
}

fn pieces(data: &[u8]) -> String {
    let mut told = String::new();
    for (at, piece) in data.chunks(BLOCK).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            let comma = if told.is_empty() { "" } else { "," };
            write!(told, "{comma}{at}:{}", hex::encode(piece)).unwrap();
        }
    }
    match told.is_empty() {
        true => "-".to_owned(),
        false => told,
    }
}

fn joined(seen: &Seen) -> Vec<u8> {
    let mut data = vec![0; usize::try_from(seen.size).unwrap()];
    for piece in seen.content.split(',').filter(|it| *it != "-") {
        let (at, piece) = piece.split_once(':').unwrap();
        let (at, piece) = (
            at.parse::<usize>().unwrap() * BLOCK,
            hex::decode(piece).unwrap(),
        );
        data[at..at + piece.len()].copy_from_slice(&piece);
    }
    data
}
