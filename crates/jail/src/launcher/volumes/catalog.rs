//! Named volumes as the server asks for them: which there are, and taking one away.

use std::io;

use super::is_name;
use crate::launcher::Launcher;
use crate::proto::{Answer, Failure, FailureKind, VolumeStatus};
use crate::volumes;

impl Launcher {
    pub(in crate::launcher) fn list_volumes(&self) -> Answer {
        let found = match volumes::all() {
            Ok(found) => found,
            Err(error) => {
                let words = format!("read the folder of volumes: {error}");
                return Answer::Failed(Failure::new(FailureKind::VolumeUnusable, words));
            }
        };
        let mut users = self.volume_users();
        let status = |found: volumes::Found| VolumeStatus {
            sandboxes: users
                .remove(&found.name)
                .unwrap_or_default()
                .into_iter()
                .collect(),
            name: found.name,
            size_bytes: found.size_bytes,
            used_bytes: found.used_bytes,
            owner: found.owner,
        };
        Answer::Volumes(found.into_iter().map(status).collect())
    }

    pub(in crate::launcher) fn remove_volume(&mut self, name: &str) -> Answer {
        let failed = |kind, words: String| Answer::Failed(Failure::new(kind, words));
        let absent = || {
            failed(
                FailureKind::VolumeNotFound,
                format!("there is no volume {name}"),
            )
        };
        if !is_name(name) {
            return absent();
        }
        if let Some(users) = self.volume_users().get(name) {
            let users: Vec<&str> = users.iter().map(String::as_str).collect();
            let words = format!("the volume {name} is mounted by {}", users.join(", "));
            return failed(FailureKind::VolumeInUse, words);
        }
        if matches!(self.volumes.open.get(name), Some(None)) {
            let words = format!("the volume {name} is being opened: try again in a moment");
            return failed(FailureKind::VolumeInUse, words);
        }
        match self.retire(name) {
            Ok(()) => Answer::Done,
            Err(error) if error.kind() == io::ErrorKind::NotFound => absent(),
            Err(error) => {
                let words = format!("remove the volume {name}: {error}");
                failed(FailureKind::VolumeUnusable, words)
            }
        }
    }
}
