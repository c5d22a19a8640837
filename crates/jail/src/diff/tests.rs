mod cases;
mod hostile;
mod property;
mod tars;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, XattrFlags};
use tempfile::TempDir;

use super::*;

/// What is made at a path; the folders above it are made where there are none.
#[derive(Debug, Clone, Copy)]
enum Make {
    Dir,
    File(&'static str),
    Bytes(&'static [u8]),
    Link(&'static str),
    Fifo,
    Device(u32),
    /// What stands in a layer for a name that is gone.
    Gone,
    /// A folder of a layer that hides all below it.
    Opaque,
    /// Of what was made before.
    Mode(u32),
    Owner(u32),
    Attribute(&'static str),
    Time(i64),
}

fn make(root: &Path, things: &[(&str, Make)]) {
    for (path, what) in things {
        let at = root.join(path);
        if let Some(above) = at.parent() {
            fs::create_dir_all(above).unwrap();
        }
        make_one(&at, *what);
    }
}

fn make_one(at: &Path, what: Make) {
    use rustix::fs::FileType;
    let node = |kind, number| {
        rustix::fs::mknodat(CWD, at, kind, Mode::from_raw_mode(0o644), number).unwrap();
    };
    let attribute = |name: &str, value: &str| {
        rustix::fs::setxattr(at, name, value.as_bytes(), XattrFlags::empty()).unwrap();
    };
    match what {
        Make::Dir => fs::create_dir_all(at).unwrap(),
        Make::File(text) => fs::write(at, text).unwrap(),
        Make::Bytes(bytes) => fs::write(at, bytes).unwrap(),
        Make::Link(target) => symlink(target, at).unwrap(),
        Make::Fifo => node(FileType::Fifo, 0),
        Make::Device(minor) => node(FileType::CharacterDevice, rustix::fs::makedev(1, minor)),
        Make::Gone => node(FileType::CharacterDevice, 0),
        Make::Opaque => {
            fs::create_dir_all(at).unwrap();
            attribute("user.overlay.opaque", "y");
        }
        Make::Mode(mode) => {
            rustix::fs::chmod(at, Mode::from_raw_mode(mode)).unwrap();
        }
        Make::Owner(owner) => std::os::unix::fs::lchown(at, Some(owner), Some(owner)).unwrap(),
        Make::Attribute(value) => attribute("user.note", value),
        Make::Time(seconds) => {
            let file = fs::File::open(at).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds as u64);
            file.set_modified(time).unwrap();
        }
    }
}

/// Both views and the layers, as plain folders.
struct Place {
    home: TempDir,
    layers: usize,
}

impl Place {
    fn new(layers: usize) -> Self {
        let place = Self {
            home: tempfile::tempdir().unwrap(),
            layers,
        };
        let views = [place.old(), place.new_view()];
        for folder in views
            .into_iter()
            .chain((0..layers).map(|at| place.layer(at)))
        {
            fs::create_dir(folder).unwrap();
        }
        place
    }

    fn old(&self) -> PathBuf {
        self.home.path().join("old")
    }

    fn new_view(&self) -> PathBuf {
        self.home.path().join("new")
    }

    fn layer(&self, number: usize) -> PathBuf {
        self.home.path().join(format!("layer{number}"))
    }

    fn compare(&self, limits: &Limits) -> (Vec<Change>, Summary) {
        let layers: Vec<_> = (0..self.layers).map(|at| opened(&self.layer(at))).collect();
        compared(
            &opened(&self.old()),
            &opened(&self.new_view()),
            &layers,
            limits,
        )
        .unwrap()
    }
}

fn opened(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

/// The changes, each of which went through JSON.
fn compared(
    old: &OwnedFd,
    new: &OwnedFd,
    layers: &[OwnedFd],
    limits: &Limits,
) -> io::Result<(Vec<Change>, Summary)> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let mut sink = |change: &Change| {
        let line = serde_json::to_string(change)?;
        bytes += line.len() as u64 + 1;
        assert_eq!(&serde_json::from_str::<Change>(&line)?, change);
        found.push(change.clone());
        Ok(())
    };
    let summary = compare(old.as_fd(), new.as_fd(), layers, limits, &mut sink)?;
    let counted = summary.added + summary.changed + summary.deleted + summary.touched;
    assert_eq!((counted, summary.output_bytes), (found.len() as u64, bytes));
    Ok((found, summary))
}

/// A change in short: `changed /path content mode`.
fn line(change: &Change) -> String {
    let words = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = words(serde_json::to_value(change.change).unwrap());
    text.push_str(&format!(" {}", change.path));
    for part in &change.differs {
        text.push_str(&format!(" {}", words(serde_json::to_value(part).unwrap())));
    }
    text
}

fn lines(changes: &[Change]) -> Vec<String> {
    changes.iter().map(line).collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
