//! Whether sessions can be made here: found out by making one.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use barchan_jail::guest::Boot;
use barchan_jail::session::{How, Orders, Place, tree_of};
use barchan_wire::execd::isolated::{Capabilities, Hardening, Layer};
use rustix::fs::CWD;
use rustix::process::{Signal, kill_process};

use super::make::launch;
use super::store::Part;
use crate::app::App;
use crate::fault::{Fault, Kind};

/// What the part of a session that is only tried is called; no id looks like it.
const TRIED: &str = "tried";

/// What can be had here.
pub(crate) async fn capabilities(app: &Rc<App>) -> Capabilities {
    let found = works(app).await;
    let available = found.is_ok();
    let is_init = rustix::process::getpid().is_init();
    let wall = |stands: bool, why: &str| Layer {
        state: if stands { "active" } else { "disabled" }.to_owned(),
        message: if stands { "" } else { why }.to_owned(),
    };
    let bare = "the daemon was started unconfined";
    Capabilities {
        available,
        isolator: "barchan-jail".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        message: found.err().map(|fault| fault.message).unwrap_or_default(),
        setpriv_available: available,
        userns_available: false,
        commit_supported: available,
        diff_supported: available,
        hardening: Hardening {
            init_mode: if is_init { "pid1" } else { "none" }.to_owned(),
            signal_shield: is_init,
            cap_drop: wall(app.confine, bare),
            seccomp: wall(app.confine, bare),
            landlock: wall(false, "mount namespaces do its work"),
            ebpf: wall(false, "commands are not observed by eBPF"),
        },
    }
}

/// Makes a session with an overlay and a network of its own, unless one could be made before.
///
/// # Errors
/// What is missing.
async fn works(app: &Rc<App>) -> Result<(), Fault> {
    if app.isolated.works.get().is_some() {
        return Ok(());
    }
    let app = Rc::clone(app);
    // A task of its own, so that a caller who leaves does not leave half of it behind.
    let tried = tokio::task::spawn_local(async move {
        // In turn: they have one name.
        let _turn = app.isolated.trying.lock().await;
        let (part, tree) = Part::new(app.isolated.store.as_ref(), TRIED, 1)?;
        let tried = attempt(&app, &part, &tree).await;
        part.remove().await;
        tried?;
        let _ = app.isolated.works.set(());
        Ok(())
    });
    let lost = |error: tokio::task::JoinError| Fault::new(Kind::Failed, error.to_string());
    tried.await.map_err(lost)?
}

async fn attempt(app: &App, part: &Part, part_tree: &OwnedFd) -> Result<(), Fault> {
    let lower = tree_of(CWD, Path::new("/"), false).map_err(|error| {
        let message = format!("this sandbox cannot mount its files elsewhere: {error}");
        Fault::new(Kind::Unavailable, message)
    })?;
    let orders = Orders {
        // Over something that every session has.
        places: vec![Place {
            target: "/dev/shm".into(),
            how: How::Overlay(0),
        }],
        own_network: true,
    };
    let boot = Boot {
        id: TRIED.to_owned(),
        cwd: "/".to_owned(),
        ..Boot::default()
    };
    let (pid, exit) = launch(app, &orders, &boot, part, part_tree, &[lower.as_fd()]).await?;
    if app.reaper.holds(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let _ = exit.await;
    Ok(())
}
