//! Changes to files, as the agent is told of them and as the model makes them.

use std::fmt;
use std::sync::Arc;

use super::tree::{Id, Kind, Node, Place, Tree};

/// A file, folder or link that is changed, by its path.
pub(super) type Path = Vec<u8>;

/// One change. All times are given, so that nothing depends on when it is made.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// What is changed.
    pub(super) path: Path,
    pub(super) what: What,
    /// The time that it and, if its names change, the folders around get.
    pub(super) time: i64,
}

/// What is done to a path.
#[derive(Debug, Clone)]
pub(super) enum What {
    Mkdir { mode: u32 },
    Create { mode: u32, data: Vec<u8> },
    Append { data: Vec<u8> },
    Write { offset: usize, data: Vec<u8> },
    Truncate { size: usize },
    Link { new: Path },
    Symlink { target: Vec<u8> },
    Fifo { mode: u32 },
    Chmod { mode: u32 },
    Chown { owner: (u32, u32) },
    Set { name: Vec<u8>, value: Vec<u8> },
    Unset { name: Vec<u8> },
    Touch,
    Unlink,
    Rmdir,
    Clear,
    Move { new: Path },
}

fn word(bytes: &[u8]) -> String {
    match bytes {
        [] => "x-".to_owned(),
        _ => format!("x{}", hex::encode(bytes)),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, words) = match &self.what {
            What::Mkdir { mode } => ("mkdir", format!("{mode:o}")),
            What::Create { mode, data } => ("create", format!("{mode:o} {}", data.len())),
            What::Append { data } => ("append", format!("{}", data.len())),
            What::Write { offset, data } => ("write", format!("{offset} {}", data.len())),
            What::Truncate { size } => ("truncate", format!("{size}")),
            What::Link { new } => ("link", new.escape_ascii().to_string()),
            What::Symlink { target } => ("symlink", target.escape_ascii().to_string()),
            What::Fifo { mode } => ("fifo", format!("{mode:o}")),
            What::Chmod { mode } => ("chmod", format!("{mode:o}")),
            What::Chown { owner } => ("chown", format!("{owner:?}")),
            What::Set { name, value } => {
                let name = name.escape_ascii();
                ("set", format!("{name} {}", value.len()))
            }
            What::Unset { name } => ("unset", name.escape_ascii().to_string()),
            What::Touch => ("touch", String::new()),
            What::Unlink => ("unlink", String::new()),
            What::Rmdir => ("rmdir", String::new()),
            What::Clear => ("clear", String::new()),
            What::Move { new } => ("move", new.escape_ascii().to_string()),
        };
        write!(
            out,
            "{verb} {} {words} at {}",
            self.path.escape_ascii(),
            self.time
        )
    }
}

impl Change {
    /// The agent's line for it. What writing and changing owners may take away of a mode is given
    /// back.
    pub(super) fn line(&self, tree: &Tree) -> String {
        let (path, time) = (hex::encode(&self.path), self.time);
        let node = find(tree, &self.path).map(|place| tree.node(place.id));
        let mode = node.map_or(0, |node| node.mode);
        match &self.what {
            What::Mkdir { mode } => format!("mkdir {path} {mode} {time}"),
            What::Create { mode, data } => format!("create {path} {mode} {time} {}", word(data)),
            What::Append { data } => format!("write {path} {mode} {time} -1 {}", word(data)),
            What::Write { offset, data } => {
                format!("write {path} {mode} {time} {offset} {}", word(data))
            }
            What::Truncate { size } => format!("truncate {path} {mode} {time} {size}"),
            What::Link { new } => format!("link {path} {time} {}", word(new)),
            What::Symlink { target } => format!("symlink {path} {time} {}", word(target)),
            What::Fifo { mode } => format!("fifo {path} {mode} {time}"),
            What::Chmod { mode } => format!("chmod {path} {mode}"),
            What::Chown { owner: (uid, gid) } => {
                let is_link = node.is_some_and(|node| matches!(node.kind, Kind::Link(_)));
                let mode = if is_link { -1 } else { i64::from(mode) };
                format!("chown {path} {mode} {uid} {gid}")
            }
            What::Set { name, value } => format!("set {path} {} {}", word(name), word(value)),
            What::Unset { name } => format!("unset {path} {}", word(name)),
            What::Touch => format!("touch {path} {time}"),
            What::Unlink => format!("unlink {path} {time}"),
            What::Rmdir => format!("rmdir {path} {time}"),
            What::Clear => format!("clear {path} {time}"),
            What::Move { new } => format!("move {path} {time} {}", word(new)),
        }
    }

    /// Makes it in the model. `is_crossed`: the agent had to make the moved folder anew.
    pub(super) fn apply(&self, tree: &mut Tree, is_crossed: bool) {
        let (above, name) = spot(tree, &self.path);
        let made = match &self.what {
            What::Mkdir { mode } => Some((Kind::Folder(Default::default()), *mode)),
            What::Create { mode, data } => Some((Kind::File(Arc::new(data.clone())), *mode)),
            What::Symlink { target } => Some((Kind::Link(target.clone()), 0o777)),
            What::Fifo { mode } => Some((Kind::Pipe, *mode)),
            _ => None,
        };
        if let Some((kind, mode)) = made {
            let id = tree.add(self.new_node(kind, mode, tree.node(above)));
            tree.names_mut(above).insert(name, id);
            tree.node_mut(above).modified = self.time;
            return;
        }
        match &self.what {
            What::Unlink | What::Rmdir | What::Clear => tree.remove(above, &name),
            What::Link { new } => {
                let id = tree.raise(above, &name);
                let (above, name) = spot(tree, new);
                tree.names_mut(above).insert(name, id);
                tree.node_mut(above).modified = self.time;
                return;
            }
            What::Move { new } => {
                self.shift(tree, (above, &name), new, is_crossed);
            }
            _ => {
                let id = tree.raise(above, &name);
                return self.alter(tree.node_mut(id));
            }
        }
        tree.node_mut(above).modified = self.time;
    }

    fn new_node(&self, kind: Kind, mode: u32, above: &Node) -> Node {
        // A folder hands its group on, and so that it does.
        let group = if above.mode & 0o2000 == 0 {
            0
        } else {
            above.owner.1
        };
        Node {
            kind,
            mode,
            owner: (0, group),
            modified: self.time,
            attributes: Default::default(),
            is_below: false,
            is_raised: false,
        }
    }

    fn alter(&self, node: &mut Node) {
        let data = match &mut node.kind {
            Kind::File(data) => Some(data),
            _ => None,
        };
        match &self.what {
            What::Append { data: more } => Arc::make_mut(data.unwrap()).extend(more),
            What::Write { offset, data: more } => {
                let data = Arc::make_mut(data.unwrap());
                let end = offset + more.len();
                if !more.is_empty() {
                    data.resize(data.len().max(end), 0);
                    data[*offset..end].copy_from_slice(more);
                }
            }
            What::Truncate { size } => Arc::make_mut(data.unwrap()).resize(*size, 0),
            What::Chmod { mode } => {
                node.mode = *mode;
                return;
            }
            What::Chown { owner } => {
                node.owner = *owner;
                return;
            }
            What::Set { name, value } => {
                node.attributes.insert(name.clone(), value.clone());
                return;
            }
            What::Unset { name } => {
                node.attributes.remove(name);
                return;
            }
            _ => {}
        }
        node.modified = self.time;
    }

    fn shift(&self, tree: &mut Tree, (above, name): (Id, &[u8]), new: &Path, is_crossed: bool) {
        let id = match is_crossed {
            true => cross(tree, above, name),
            false => tree.raise(above, name),
        };
        tree.names_mut(above).remove(name);
        let (target, name) = spot(tree, new);
        tree.names_mut(target).insert(name, id);
        tree.node_mut(target).modified = self.time;
    }
}

/// A folder is made anew, with what is in it moved over: what lies below comes up. Its number.
fn cross(tree: &mut Tree, above: Id, name: &[u8]) -> Id {
    let id = *tree.names_mut(above).get(name).unwrap();
    let inner: Vec<_> = tree
        .names(id)
        .map(|(name, id)| (name.clone(), id))
        .collect();
    let mut names = std::collections::BTreeMap::new();
    for (name, inner) in inner {
        let moved = match tree.node(inner).kind {
            Kind::Folder(_) => cross(tree, id, &name),
            _ => tree.raise(id, &name),
        };
        tree.names_mut(id).remove(&name);
        names.insert(name, moved);
    }
    let made = Node {
        kind: Kind::Folder(names),
        is_below: false,
        ..tree.node(id).clone()
    };
    tree.names_mut(id).clear();
    tree.add(made)
}

/// What is at a path.
pub(super) fn find(tree: &Tree, path: &[u8]) -> Option<Place> {
    tree.paths().into_iter().find(|place| place.path == path)
}

/// The folder that a path lies in, and its name there.
fn spot(tree: &Tree, path: &[u8]) -> (Id, Vec<u8>) {
    let at = path.iter().rposition(|byte| *byte == b'/').unwrap();
    let (above, name) = (&path[..at], &path[at + 1..]);
    match find(tree, above) {
        Some(place) => (place.id, name.to_vec()),
        None => (super::tree::ROOT, path.to_vec()),
    }
}
