//! The egress program, while the launcher lives: it is started anew when it ends, and told of every
//! sandbox again. Nothing of a sandbox goes out meanwhile; connections wait in their sockets.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::epoll;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus};

use super::slot::{Slot, Stage};
use super::sockets::Sockets;
use super::{Launcher, now_ms, sealed, token, watch};
use crate::egress::{self, Given, Running};
use crate::enter::StepError;
use crate::faults::at;
use crate::ids::Map;
use crate::proto::IdMode;
use crate::redirect::Doors;
use crate::spec::{Network, Spec};
use crate::{frames, log, redirect};

/// The name of its socket among those of the daemons.
pub(crate) const SOCKET: &str = "egress";
/// A layer of every sandbox's root, above its image: how it finds names. Not written into the
/// sandbox, where it would be a change of its files.
const NAMES: &str = "jail/names";
/// How long it is left alone after it ended soon after its start, in milliseconds.
const PAUSE_MS: i64 = 1_000;
/// How long it must have run for its end to be no sign of a fault, in milliseconds.
const SETTLED_MS: i64 = 10_000;
/// How long the launcher waits, at most, until it has taken a message.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// What is known of it.
#[derive(Debug)]
pub(super) struct Egress {
    program: OwnedFd,
    api: OwnedFd,
    map: Map,
    running: Option<Running>,
    started_ms: i64,
    /// When it is started, if it does not run.
    due_ms: i64,
}

impl Egress {
    /// Prepares it.
    ///
    /// # Errors
    /// Why sandboxes have no way out: there is no program, it cannot be read, or this host cannot
    /// redirect what they send. That keeps nobody from running them.
    pub(super) fn prepare(
        program: Option<&Path>,
        ids: IdMode,
        sockets: &Sockets,
    ) -> Result<Self, String> {
        let program = program.ok_or("the server named no egress program")?;
        let prepared = Self::try_prepare(program, ids, sockets);
        prepared.map_err(|error| {
            let words = error.to_string();
            log::say(&format!("sandboxes have no way out: {words}"));
            words
        })
    }

    fn try_prepare(program: &Path, ids: IdMode, sockets: &Sockets) -> io::Result<Self> {
        redirect::try_out()?;
        write_names().map_err(at("write how sandboxes find names"))?;
        Ok(Self {
            program: sealed::program("barchan-egress", program)?,
            api: sockets.listen(SOCKET)?.into(),
            map: Map::of_egress(ids),
            running: None,
            started_ms: 0,
            due_ms: 0,
        })
    }

    /// Tells it something, with descriptors. One that does not take it ends.
    fn tell(&self, words: &str, doors: Option<&Doors>) {
        let Some(running) = &self.running else { return };
        let fds = doors.map(|it| [it.tcp.as_fd(), it.dns.as_fd()]);
        let fds = fds.as_ref().map_or(&[][..], |fds| &fds[..]);
        if frames::send(running.channel.as_fd(), words.as_bytes(), fds).is_err() {
            let kill = rustix::process::Signal::KILL;
            let _ = rustix::process::pidfd_send_signal(&running.pidfd, kill);
        }
    }

    fn start(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        self.started_ms = now_ms();
        let running = egress::start(&Given {
            program: &self.program,
            map: &self.map,
            api: &self.api,
        })?;
        let (patience, kind) = (Some(PATIENCE), rustix::net::sockopt::Timeout::Send);
        rustix::net::sockopt::set_socket_timeout(&running.channel, kind, patience)?;
        watch(epoll, &running.pidfd, token::of(token::EGRESS_END, 0))?;
        self.running = Some(running);
        Ok(())
    }
}

impl Launcher {
    /// Starts it if it is to run and does not.
    pub(super) fn keep_egress(&mut self) {
        let Ok(egress) = &mut self.egress else {
            return;
        };
        if egress.running.is_some() || now_ms() < egress.due_ms {
            return;
        }
        if let Err(error) = egress.start(&self.epoll) {
            log::say(&format!("start the egress program: {error}"));
            egress.running = None;
            egress.due_ms = now_ms() + PAUSE_MS;
            return;
        }
        for slot in self.slots.values() {
            self.open_doors(slot);
        }
    }

    /// Tells it of a sandbox that lives.
    pub(super) fn open_doors(&self, slot: &Slot) {
        let Stage::Living(tenant) = &slot.stage else {
            return;
        };
        if let (Ok(egress), Some(doors)) = (&self.egress, &slot.doors) {
            egress.tell(&format!("open {}", tenant.id), Some(doors));
        }
    }

    /// Tells it that a sandbox is gone.
    pub(super) fn close_doors(&self, id: &str) {
        if let Ok(egress) = &self.egress {
            egress.tell(&format!("close {id}"), None);
        }
    }

    /// What the files of a sandbox begin with, top first: how it finds names, and its image.
    pub(super) fn image_layers(&self, spec: &Spec) -> Vec<PathBuf> {
        let has_names = self.egress.is_ok() && spec.network == Network::Own;
        let names = has_names.then(|| PathBuf::from(NAMES));
        names
            .into_iter()
            .chain(spec.layers.iter().cloned())
            .collect()
    }

    /// It ended.
    pub(super) fn egress_ended(&mut self) {
        let Ok(egress) = &mut self.egress else {
            return;
        };
        let Some(running) = egress.running.take() else {
            return;
        };
        let options = WaitIdOptions::EXITED;
        let status = rustix::process::waitid(WaitId::PidFd(running.pidfd.as_fd()), options);
        let _ = epoll::delete(&self.epoll, &running.pidfd);
        let last = frames::receive(&running.channel, false).ok().flatten();
        let failed = last.and_then(|(bytes, _)| serde_json::from_slice::<StepError>(&bytes).ok());
        let status = status.ok().flatten();
        let code = status.as_ref().and_then(WaitIdStatus::exit_status);
        let signal = status.as_ref().and_then(WaitIdStatus::terminating_signal);
        let why = match (failed, code, signal) {
            (Some(failed), ..) => failed.to_string(),
            (None, Some(code), _) => format!("it ended with code {code}"),
            (None, None, signal) => format!("signal {} ended it", signal.unwrap_or(0)),
        };
        log::say(&format!("the egress program: {why}; it is started anew"));
        let is_settled = now_ms() - egress.started_ms >= SETTLED_MS;
        egress.due_ms = now_ms() + if is_settled { 0 } else { PAUSE_MS };
        self.keep_egress();
    }
}

/// Writes the layer that tells sandboxes whom to ask about names.
fn write_names() -> io::Result<()> {
    let folder = Path::new(NAMES).join("etc");
    let mut open = fs::DirBuilder::new();
    open.recursive(true).mode(0o755).create(&folder)?;
    let text = format!("nameserver {}\n", redirect::RESOLVER);
    // Whole or not at all: an earlier launcher's may be mounted in a sandbox still.
    let made = folder.join(".resolv.conf");
    fs::write(&made, text)?;
    fs::set_permissions(&made, fs::Permissions::from_mode(0o644))?;
    fs::rename(&made, folder.join("resolv.conf"))
}
