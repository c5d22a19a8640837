//! Makes sessions. Whatever fails on the way, nothing of it stays.

use std::cell::Cell;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use barchan_jail::enter::StepError;
use barchan_jail::guest::Boot;
use barchan_jail::session::{self, How, Kit, Orders, Place};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use super::order::{self, Order, Wanted};
use super::run::Runs;
use super::store::Part;
use super::{End, Overlaid, Session, life};
use crate::app::App;
use crate::clock;
use crate::fault::{Fault, Kind, errno, text};
use crate::limits::SESSION_START_MS;

/// Settings that runs of a session may append to, as commands of a sandbox may to its own file.
const ENV_FILE: (&str, &str) = ("EXECD_ENVS", "/run/environment");

/// Makes a session.
///
/// # Errors
/// When the sandbox has no such trees, when there are too many sessions, or when this sandbox can
/// make none.
pub(crate) async fn make(app: &Rc<App>, order: Order) -> Result<Rc<Session>, Fault> {
    let (told, made) = oneshot::channel();
    let app = Rc::clone(app);
    // A task of its own, so that a caller who leaves does not leave half a session behind.
    tokio::task::spawn_local(async move {
        if let Err(Ok(session)) = told.send(make_whole(&app, order).await) {
            let _ = life::delete(&app, &session.id).await;
        }
    });
    let lost = || Fault::new(Kind::Failed, "the making of the session broke off");
    made.await.unwrap_or_else(|_| Err(lost()))
}

async fn make_whole(app: &Rc<App>, order: Order) -> Result<Rc<Session>, Fault> {
    let room = app.isolated.reserve()?;
    let trees = order.trees.iter().map(Tree::open);
    let trees: Vec<Tree> = trees.collect::<Result<_, Fault>>()?;
    let id = random_uuid()?;
    let boot = boot(app, &order, &id);
    let orders = Orders {
        places: order.trees.iter().map(place).collect(),
        own_network: order.spec.share_net != Some(true),
    };
    let (part, part_tree) = Part::new(app.isolated.store.as_ref(), &id, order.overlays)?;
    let mounts: Vec<_> = trees.iter().map(|tree| tree.mount.as_fd()).collect();
    let launched = launch(app, &orders, &boot, &part, &part_tree, &mounts).await;
    let (pid, exit) = match launched {
        Ok(launched) => launched,
        Err(fault) => {
            part.remove().await;
            return Err(fault);
        }
    };
    let overlays = overlaid(&order.trees, trees, &part);
    let session = Rc::new(Session {
        id,
        spec: order.spec,
        runs: Runs::default(),
        created_at: clock::now(),
        last_run_at: Cell::new(clock::now()),
        last_used: Cell::new(Instant::now()),
        in_use: Cell::new(0),
        idle: order.idle,
        ending: Cell::new(false),
        pid,
        alive: watch::Sender::new(true),
        part,
        overlays,
    });
    app.isolated.add(&session);
    drop(room);
    tokio::task::spawn_local(life::watch(Rc::clone(app), Rc::clone(&session), exit));
    Ok(session)
}

/// A tree of the sandbox: where it is, and a mount of it for the session.
struct Tree {
    place: OwnedFd,
    mount: OwnedFd,
}

impl Tree {
    fn open(wanted: &Wanted) -> Result<Self, Fault> {
        let shown = wanted.source.display();
        let refused = |why: &str| {
            let message = format!("{shown} must be an existing path of the sandbox: {why}");
            Fault::new(Kind::BadRequest, message)
        };
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if matches!(wanted.how, How::Overlay(_)) {
            flags |= OFlags::DIRECTORY;
        }
        let place = openat(CWD, &wanted.source, flags, Mode::empty())
            .map_err(|errno| refused(&text(errno)))?;
        // Where it really leads: a link must not bring what the path could not.
        let path = std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))
            .map_err(|error| refused(&text(errno(&error))))?;
        order::permit(&path, wanted.how)?;
        let whole = !matches!(wanted.how, How::Overlay(_));
        let mount = session::tree_of(&place, Path::new(""), whole).map_err(|error| {
            let why = text(errno(&error));
            let message = format!("this sandbox cannot mount {shown} elsewhere: {why}");
            Fault::new(Kind::Unavailable, message)
        })?;
        Ok(Self { place, mount })
    }
}

fn place(wanted: &Wanted) -> Place {
    Place {
        target: wanted.target.clone(),
        how: wanted.how,
    }
}

/// What the session's daemon is told at its start.
fn boot(app: &App, order: &Order, id: &str) -> Boot {
    let pass = order.spec.env_passthrough.clone().unwrap_or_default();
    let profile = order.spec.profile.unwrap_or_default();
    let mut env = order::visible(app.environment.now(), profile, &pass);
    env.insert(ENV_FILE.0.to_owned(), ENV_FILE.1.to_owned());
    Boot {
        id: id.to_owned(),
        env,
        cwd: String::from_utf8_lossy(order.cwd.as_os_str().as_bytes()).into_owned(),
        uid: order.spec.uid,
        gid: order.spec.gid,
        ..Boot::default()
    }
}

/// Starts a session's PID 1 and waits until it stands.
pub(super) async fn launch(
    app: &App,
    orders: &Orders,
    boot: &Boot,
    part: &Part,
    part_tree: &OwnedFd,
    trees: &[std::os::fd::BorrowedFd<'_>],
) -> Result<(Pid, End), Fault> {
    let failed = |what: &str, error: std::io::Error| {
        let why = text(errno(&error));
        Fault::new(Kind::Failed, format!("cannot {what}: {why}"))
    };
    let listener = part.listen()?;
    let boot = held(boot).map_err(|error| failed("hold the session's settings", error))?;
    let program =
        session::own_program().map_err(|error| failed("find this daemon's program", error))?;
    let kit = Kit {
        listener: listener.as_fd(),
        boot: boot.as_fd(),
        store: part_tree.as_fd(),
        trees: trees.to_vec(),
    };
    let started = session::start(program.as_fd(), app.null.as_fd(), orders, &kit)
        .map_err(|failed| refusal(&failed))?;
    let mut exit = app.reaper.watch(started.pid);
    let answered = timeout(
        Duration::from_millis(SESSION_START_MS),
        answer(started.control),
    );
    let fault = match answered.await {
        Ok(Ok(Ok(()))) => return Ok((started.pid, exit)),
        Ok(Ok(Err(failed))) => refusal(&failed),
        Ok(Err(error)) => failed("make an isolated session, whose first process ended", error),
        Err(_) => failed(
            "make an isolated session",
            std::io::ErrorKind::TimedOut.into(),
        ),
    };
    if app.reaper.holds(started.pid) {
        let _ = kill_process(started.pid, Signal::KILL);
    }
    // Its mounts hold the part until it is gone.
    let _ = (&mut exit).await;
    Err(fault)
}

async fn answer(control: OwnedFd) -> std::io::Result<Result<(), StepError>> {
    // It keeps messages apart as a datagram socket does.
    let control = StdDatagram::from(control);
    control.set_nonblocking(true)?;
    let control = UnixDatagram::from_std(control)?;
    let read = || session::answer(&control);
    control.async_io(Interest::READABLE, read).await
}

/// The boot file, as a descriptor.
fn held(boot: &Boot) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("session", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(boot)?)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// What a step that failed means: a path of the request, or something this sandbox lacks.
fn refusal(failed: &StepError) -> Fault {
    if failed.step.starts_with("mount at ") {
        let message = format!(
            "cannot {}: {}; a session makes no new folders outside its /tmp and overlays",
            failed.step, failed.reason
        );
        return Fault::new(Kind::BadRequest, message);
    }
    let message = format!(
        "no isolated session can be made here: {failed}. It takes the capabilities SYS_ADMIN and \
         NET_ADMIN in the sandbox's user namespace; native sandboxes have them"
    );
    Fault::new(Kind::Unavailable, message)
}

/// The overlays whose changes can be told.
fn overlaid(wanted: &[Wanted], trees: Vec<Tree>, part: &Part) -> Vec<Overlaid> {
    let pairs = wanted.iter().zip(trees);
    let kept = pairs.filter(|(wanted, _)| wanted.persist);
    let open = kept.filter_map(|(wanted, tree)| {
        let How::Overlay(number) = wanted.how else {
            return None;
        };
        let [upper, _] = session::layer(number);
        Some(Overlaid {
            path: PathBuf::from(&wanted.target),
            lower: tree.place,
            upper: part.folder(&upper).ok()?,
        })
    });
    open.collect()
}

/// A random UUID.
fn random_uuid() -> Result<String, Fault> {
    Ok(run_id(&crate::command::start::random_id()?))
}

/// 32 hexadecimal digits in the form of a UUID.
pub(super) fn run_id(digits: &str) -> String {
    let mut text = String::with_capacity(36);
    for (at, digit) in digits.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}
