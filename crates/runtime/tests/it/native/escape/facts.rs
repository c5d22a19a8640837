//! What the host holds for the attacks to find: files, a process, listeners, a disk.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

use super::row::is_root;

/// Folders that are somebody's home, where root can leave a file for the test.
const HOMES: [&str; 2] = ["/root", "/home"];

/// Things of the host's, there for as long as this lives.
pub(crate) struct Facts {
    pub(crate) values: Map<String, Value>,
    /// A folder of the host's that any user of it may enter.
    pub(crate) scratch: TempDir,
    canaries: Vec<PathBuf>,
    process: Child,
    /// A loop device to be let go.
    disk: Option<String>,
    listeners: JoinSet<()>,
}

impl Facts {
    pub(crate) async fn new() -> Self {
        let token = format!("barchan-{}", uuid::Uuid::new_v4().simple());
        let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let secret = scratch.path().join(format!("secret-{token}"));
        fs::write(&secret, &token).unwrap();
        let process = Command::new("sleep")
            .arg0(&token)
            .arg("600")
            .spawn()
            .unwrap();
        let mut facts = Self {
            values: Map::new(),
            canaries: Vec::new(),
            process,
            disk: None,
            listeners: JoinSet::new(),
            scratch,
        };
        facts.set("token", json!(token));
        facts.set("secret", json!(secret));
        facts.set("pid", json!(facts.process.id()));
        facts.set(
            "capabilities",
            json!(barchan_jail::privileges::COMMAND.bits()),
        );
        facts.add_homes(&token);
        facts.add_disk();
        facts.add_listeners(&token).await;
        facts
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    pub(crate) fn token(&self) -> &str {
        self.values["token"].as_str().unwrap()
    }

    fn add_homes(&mut self, token: &str) {
        let shadow = fs::read("/etc/shadow").unwrap_or_default();
        self.set("shadow_sha256", json!(hex::encode(Sha256::digest(shadow))));
        if is_root() {
            self.canaries
                .extend(HOMES.iter().map(|home| Path::new(home).join(token)));
        }
        for canary in &self.canaries {
            File::create_new(canary).unwrap();
        }
    }

    /// A disk of the host's. Root makes one, so that reading and mounting it can do no harm; for
    /// others it is only a device number, since they may do neither anyway.
    fn add_disk(&mut self) {
        let mut device = (7, 0);
        if is_root() {
            let file = self.scratch.path().join("disk.ext4");
            File::create(&file).unwrap().set_len(8 << 20).unwrap();
            output(Command::new("mke2fs").args(["-q", "-F"]).arg(&file));
            let path = output(
                Command::new("losetup")
                    .args(["--find", "--show"])
                    .arg(&file),
            );
            let made = rustix::fs::stat(&path).unwrap().st_rdev;
            device = (rustix::fs::major(made), rustix::fs::minor(made));
            self.disk = Some(path);
        }
        self.set("disk", json!(device));
        self.set("disk_kind", json!("ext4"));
        self.set(
            "disk_path",
            json!(self.disk.as_deref().unwrap_or("/dev/loop0")),
        );
    }

    async fn add_listeners(&mut self, token: &str) {
        for (version, address) in [("4", "127.0.0.1"), ("6", "::1")] {
            // A host without IPv6 has no address of this kind to be reached by.
            let bound = TcpListener::bind((address, 0)).await.ok();
            let port = bound.as_ref().map(|it| it.local_addr().unwrap().port());
            self.set(&format!("port{version}"), json!(port));
            self.set(
                &format!("addresses{version}"),
                json!(port.map(|_| address).as_slice()),
            );
            let Some(listener) = bound else { continue };
            let token = token.to_owned();
            self.listeners.spawn(async move {
                while let Ok((mut caller, _)) = listener.accept().await {
                    let _ = caller.write_all(token.as_bytes()).await;
                }
            });
        }
        let file = self.scratch.path().join("socket");
        self.set("socket", json!(file));
        for name in [file, PathBuf::from(format!("\0{token}"))] {
            let listener = UnixListener::bind(name).unwrap();
            let token = token.to_owned();
            self.listeners.spawn(async move {
                while let Ok((mut caller, _)) = listener.accept().await {
                    let _ = caller.write_all(token.as_bytes()).await;
                }
            });
        }
    }
}

/// Runs a program of the host's and gives back what it printed.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

impl Drop for Facts {
    fn drop(&mut self) {
        for canary in &self.canaries {
            let _ = fs::remove_file(canary);
        }
        if let Some(disk) = &self.disk {
            output(Command::new("losetup").args(["--detach", disk]));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
