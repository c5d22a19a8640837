//! The agent in a sandbox, which changes files and lists them, and the connection with it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use barchan_runtime::{Limits, Plan, Volume, VolumeSource};
use rustix::fs::FileType;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::super::PATIENCE;
use super::tree::{Attributes, Seen, View};
use crate::native::world::{World, plan};

/// What runs in each sandbox.
const SCRIPT: &str = include_str!("agent.py");

/// Where agents of one world call. They see its folder at `/v`.
pub(super) struct Desk {
    listener: UnixListener,
    folder: TempDir,
    called: u32,
}

/// A line to an agent.
#[derive(Debug)]
pub(super) struct Agent {
    stream: BufReader<UnixStream>,
}

impl Desk {
    pub(super) async fn open() -> (Self, World) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agents");
        let listener = UnixListener::bind(&socket).unwrap();
        for (path, mode) in [(folder.path(), 0o755), (&socket, 0o777)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let allowed = vec![folder.path().canonicalize().unwrap()];
        let state = tempfile::tempdir().unwrap();
        let world = World::with(state, allowed, PathBuf::from("/dev")).await;
        let desk = Self {
            listener,
            folder,
            called: 0,
        };
        (desk, world)
    }

    /// A sandbox with an agent that looks after these folders, and the agent's name.
    pub(super) fn plan(&mut self, image: &str, tops: &[&[u8]]) -> (Plan, String) {
        self.called += 1;
        let name = format!("agent-{}", self.called);
        let tops: Vec<_> = tops.iter().map(hex::encode).collect();
        let words = ["/usr/bin/python3", "-IBSc", SCRIPT, &name];
        let words: Vec<_> = words
            .into_iter()
            .chain(tops.iter().map(|it| &**it))
            .collect();
        let plan = plan(image, &words, Limits::default());
        let volumes = vec![volume(self.folder.path())];
        (Plan { volumes, ..plan }, name)
    }

    /// The agent of this name, which has been started, and what it sees first.
    pub(super) async fn called(&self, name: &str) -> (Agent, View) {
        timeout(PATIENCE, async {
            let (stream, _) = self.listener.accept().await.unwrap();
            let mut agent = Agent {
                stream: BufReader::new(stream),
            };
            assert_eq!(agent.line().await, name);
            let seen = agent.read_listing().await;
            (agent, seen)
        })
        .await
        .expect("an agent is to call")
    }
}

fn volume(folder: &Path) -> Volume {
    Volume {
        name: "v".to_owned(),
        source: VolumeSource::HostPath(folder.canonicalize().unwrap().to_str().unwrap().to_owned()),
        sub_path: String::new(),
        target: "/v".to_owned(),
        read_only: false,
    }
}

impl Agent {
    /// What the agent answers to these orders, line by line.
    pub(super) async fn ask(&mut self, orders: &[String]) -> Vec<String> {
        let mut text = orders.join("\n");
        text.push_str("\nflush\n");
        timeout(PATIENCE, async {
            self.stream.write_all(text.as_bytes()).await.unwrap();
            let mut answers = Vec::new();
            for _ in orders {
                answers.push(self.line().await);
            }
            answers
        })
        .await
        .expect("the agent is to answer")
    }

    /// What it sees now.
    pub(super) async fn look(&mut self) -> View {
        timeout(PATIENCE, async {
            self.stream.write_all(b"list\n").await.unwrap();
            self.read_listing().await
        })
        .await
        .expect("the agent is to list")
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        assert!(line.ends_with('\n'), "the agent is gone after {line:?}");
        line.trim_end().to_owned()
    }

    async fn read_listing(&mut self) -> View {
        let (mut view, mut files) = (View::new(), BTreeMap::new());
        loop {
            let line = self.line().await;
            if line == "end" {
                break;
            }
            let (path, file, seen) = parse(&line);
            files
                .entry(file)
                .or_insert_with(Vec::new)
                .push(path.clone());
            view.insert(path, seen);
        }
        for mut names in files.into_values() {
            names.sort();
            for name in &names {
                view.get_mut(name).unwrap().first_name = Some(names[0].clone());
            }
        }
        view
    }
}

/// A line of a listing: the path, which file it is, and what is seen of it.
fn parse(line: &str) -> (Vec<u8>, String, Seen) {
    let words: Vec<_> = line.split(' ').collect();
    let [
        path,
        kind,
        mode,
        uid,
        gid,
        modified,
        file,
        size,
        content,
        attributes,
    ] = words[..]
    else {
        panic!("an agent told {line:?}");
    };
    let number = |word: &str| word.parse::<u32>().unwrap();
    let seen = Seen {
        kind: FileType::from_raw_mode(number(kind)),
        mode: number(mode),
        owner: (number(uid), number(gid)),
        modified: modified.parse().unwrap(),
        size: size.parse().unwrap(),
        content: content.to_owned(),
        attributes: attributes_of(attributes),
        first_name: None,
    };
    (hex::decode(path).unwrap(), file.to_owned(), seen)
}

fn attributes_of(words: &str) -> Attributes {
    let pairs = words.split(',').filter(|it| *it != "-");
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (hex::decode(name).unwrap(), hex::decode(value).unwrap())
    };
    pairs.map(pair).collect()
}
