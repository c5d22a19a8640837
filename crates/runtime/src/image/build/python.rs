//! Pythons outside the host's `/usr`, and a pip to begin with: what a recipe on `host` falls back
//! to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use crate::image::clients::ClientSources;
use crate::image::host::PYTHON_MIN;

/// Most interpreters that are tried.
const TRIES_MAX: usize = 24;
/// An interpreter that has not answered by then is not used.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

const PROBE: &str = "\
import json, os, sys
try:
    import pip
    pip = os.path.dirname(pip.__file__)
except ImportError:
    pip = None
print(json.dumps({'prefix': sys.base_prefix, 'major': sys.version_info[0],
                  'minor': sys.version_info[1], 'pip': pip}))";

/// An interpreter that the operator has somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Found {
    /// The tree that it belongs to.
    pub prefix: PathBuf,
    major: u32,
    pub minor: u32,
    /// The folder of its pip, if it has one.
    pub pip: Option<PathBuf>,
}

impl Found {
    /// The interpreter's path beneath its tree.
    pub(super) fn exe(&self) -> String {
        format!("bin/python3.{}", self.minor)
    }

    /// Whether its tree can be copied into an image and used there.
    fn stands_alone(&self) -> bool {
        let system = self.prefix.starts_with("/usr") || self.prefix == Path::new("/");
        self.major == 3
            && self.minor >= PYTHON_MIN
            && !system
            && self.prefix.join(self.exe()).is_file()
    }
}

/// The first interpreter whose tree can be copied: of PATH, then of where version managers put
/// them.
pub(super) async fn outside(sources: &ClientSources) -> Option<Found> {
    first(sources, Found::stands_alone).await
}

/// A folder that holds nothing but `pip` when it is bound: of whatever interpreter has one.
pub(super) async fn any_pip(sources: &ClientSources) -> Option<PathBuf> {
    first(sources, |found| found.pip.is_some()).await?.pip
}

async fn first(sources: &ClientSources, good: impl Fn(&Found) -> bool) -> Option<Found> {
    for exe in candidates(sources).into_iter().take(TRIES_MAX) {
        if let Some(found) = probe(&exe, sources).await
            && good(&found)
        {
            return Some(found);
        }
    }
    None
}

fn candidates(sources: &ClientSources) -> Vec<PathBuf> {
    let path = sources.env.get("PATH").map_or("", String::as_str);
    let mut folders: Vec<PathBuf> = path
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(PathBuf::from)
        .collect();
    let homes = sources.home.iter().flat_map(|home| {
        [
            home.join(".pyenv/versions"),
            home.join(".local/share/uv/python"),
        ]
    });
    for parent in homes.chain([sources.root.join("opt")]) {
        let mut trees: Vec<_> = fs::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .collect();
        trees.sort();
        folders.extend(trees.into_iter().rev().map(|tree| tree.join("bin")));
    }
    let mut found = Vec::new();
    for folder in folders {
        for name in [
            "python3",
            "python3.14",
            "python3.13",
            "python3.12",
            "python3.11",
        ] {
            let exe = folder.join(name);
            if exe.is_file() && !found.contains(&exe) {
                found.push(exe);
            }
        }
    }
    found
}

async fn probe(exe: &Path, sources: &ClientSources) -> Option<Found> {
    let mut command = Command::new(exe);
    command
        .args(["-I", "-c", PROBE])
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for name in ["PATH", "HOME", "PYENV_ROOT"] {
        command.envs(sources.env.get(name).map(|value| (name, value)));
    }
    let output = tokio::time::timeout(PROBE_TIMEOUT, command.output())
        .await
        .ok()?
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The wheel of pip that Debian keeps for new environments, by the host's apt: its name and
/// content. `None` where that does not work.
pub(super) async fn pip_from_apt(folder: &Path) -> Option<(String, Vec<u8>)> {
    fs::create_dir_all(folder).ok()?;
    let steps = "apt-get download -qq python3-pip-whl && dpkg-deb -x python3-pip-whl_*.deb out";
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", steps])
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    tokio::time::timeout(FETCH_TIMEOUT, command.output())
        .await
        .ok()?
        .ok()?;
    let wheels = fs::read_dir(folder.join("out/usr/share/python-wheels")).ok()?;
    let mut paths = wheels.flatten().map(|entry| entry.path());
    let wheel = paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("pip-") && name.ends_with(".whl")
    })?;
    let name = wheel.file_name()?.to_str()?.to_owned();
    Some((name, fs::read(&wheel).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A world whose interpreters only answer the probe.
    fn world(pythons: &[(&str, &str, u32)]) -> (tempfile::TempDir, ClientSources) {
        let root = tempfile::tempdir().unwrap();
        let mut path = Vec::new();
        for (folder, prefix, minor) in pythons {
            let bin = root.path().join(folder).join("bin");
            fs::create_dir_all(&bin).unwrap();
            let prefix = prefix.replace("ROOT", root.path().to_str().unwrap());
            let answer = format!(r#"{{"prefix":"{prefix}","major":3,"minor":{minor},"pip":null}}"#);
            let script = format!("#!/bin/sh\necho '{answer}'\n");
            for name in ["python3", &format!("python3.{minor}")] {
                fs::write(bin.join(name), &script).unwrap();
                fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
            }
            path.push(bin.display().to_string());
        }
        let env = BTreeMap::from([("PATH".to_owned(), path.join(":"))]);
        let sources = ClientSources {
            env,
            home: None,
            root: root.path().to_path_buf(),
        };
        (root, sources)
    }

    #[tokio::test]
    async fn an_interpreter_of_a_version_manager_is_found() {
        let (root, sources) = world(&[
            ("sys", "/usr", 12),
            ("old", "ROOT/old", 10),
            ("gone", "ROOT/elsewhere", 13),
            ("good", "ROOT/good", 12),
        ]);
        let found = outside(&sources).await.unwrap();
        assert_eq!(
            (found.prefix.clone(), found.minor),
            (root.path().join("good"), 12)
        );
    }

    #[tokio::test]
    async fn there_may_be_none() {
        let (_root, sources) = world(&[("old", "ROOT/old", 9), ("sys", "/usr", 13)]);
        assert_eq!(outside(&sources).await, None);
        assert_eq!(any_pip(&sources).await, None);
    }
}
