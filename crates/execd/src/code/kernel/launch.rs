//! Starts the process of a kernel and attends to it until it ends.

use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use barchan_jail::child::{self, Child, SpawnError};
use tokio::sync::{oneshot, watch};

use super::super::connection::{ConnectionFile, Reserved};
use super::super::message::Signer;
use super::super::spec::Spec;
use super::{Kernel, Tail};
use crate::app::App;
use crate::command::pipe::{self, Output};
use crate::command::start::random_id;
use crate::command::tree;
use crate::environment::{Variables, to_c};
use crate::fault::{Fault, Kind, errno, text};
use crate::files::expand::escape;
use crate::process::{Ended, Exit};
use crate::program;

/// What a kernel is started with.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// Which.
    pub(crate) spec: &'a Spec,
    /// The id of its context.
    pub(crate) mark: &'a str,
    /// Where it works.
    pub(crate) cwd: &'a Path,
    /// Its environment, but for what its description adds.
    pub(crate) variables: Variables,
}

/// Starts a kernel; it needs some time until it listens. `is_given` tells the ports of the others.
///
/// # Errors
/// When its program cannot be run at all.
pub(crate) fn start(
    app: &Rc<App>,
    launch: Launch<'_>,
    is_given: impl Fn(u16) -> bool,
) -> Result<Rc<Kernel>, Fault> {
    let Launch {
        spec,
        mark,
        cwd,
        mut variables,
    } = launch;
    let (key, session) = (random_id()?, random_id()?);
    let fault = |tried: &str, error: std::io::Error| {
        let why = text(errno(&error));
        Fault::new(Kind::Failed, format!("cannot {tried}: {why}"))
    };
    let reserved = Reserved::new(is_given).map_err(|e| fault("find ports for the kernel", e))?;
    let ports = reserved.ports;
    let file = ConnectionFile::write(&variables, &session, ports, &key)
        .map_err(|e| fault("write the kernel's connection file in /run or /tmp", e))?;
    variables.extend(spec.env.clone());
    variables.insert(tree::MARK.to_owned(), mark.to_owned());
    variables.insert("PWD".to_owned(), escape(cwd.as_os_str().as_bytes()));
    let (output, end) =
        pipe::pair().map_err(|errno| fault("open a pipe for the kernel", errno.into()))?;
    let arguments = spec.arguments(&file.path().to_string_lossy());
    let pid = spawn(app, spec, &arguments, cwd, &variables, &end)?;
    drop((end, reserved));
    let exit = app.reaper.watch(pid);
    let (told, seen) = watch::channel(None);
    let kernel = Rc::new(Kernel {
        mark: mark.to_owned(),
        pid,
        interrupt_mode: spec.interrupt_mode,
        ports,
        signer: Signer::new(&key)
            .ok_or_else(|| Fault::new(Kind::Failed, "cannot use the kernel's key"))?,
        session,
        asked: Cell::new(0),
        channels: RefCell::default(),
        exit: seen,
        works: Cell::new(false),
        killed: Cell::new(None),
        tail: RefCell::new(Tail::default()),
    });
    let attended = attend(Rc::clone(app), Rc::clone(&kernel), output, exit, told, file);
    tokio::task::spawn_local(attended);
    Ok(kernel)
}

fn spawn(
    app: &App,
    spec: &Spec,
    arguments: &[String],
    cwd: &Path,
    variables: &Variables,
    output: &std::os::fd::OwnedFd,
) -> Result<rustix::process::Pid, Fault> {
    let path = variables
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let name = arguments.first().map(String::as_str).unwrap_or_default();
    let folder = spec.folder.display();
    let cannot = |why: &str| {
        let message =
            format!("cannot start {name:?}, the program of the kernel in {folder}: {why}");
        Fault::new(Kind::Failed, message)
    };
    let program = program::find(name, &spec.search_path(path), cwd)
        .map_err(|missing| cannot(missing.text()))?;
    let argv: Result<Vec<_>, _> = arguments
        .iter()
        .map(|word| CString::new(word.as_str()))
        .collect();
    let argv = argv.map_err(|_| cannot("an argument holds a NUL byte"))?;
    let refused = |error: SpawnError| cannot(&format!("{}: {}", error.step, text(error.errno)));
    child::spawn(&Child {
        program: &program,
        argv: &argv,
        env: &to_c(variables),
        cwd: &CString::new(cwd.as_os_str().as_bytes()).unwrap_or_default(),
        stdin: app.null.as_fd(),
        stdout: output.as_fd(),
        stderr: output.as_fd(),
        extra: None,
        ids: None,
        tty: false,
        confine: app.confine,
    })
    .map_err(refused)
}

/// Reads what the kernel itself prints, so that it is never held up, and tells its end.
async fn attend(
    app: Rc<App>,
    kernel: Rc<Kernel>,
    mut output: Output,
    mut exit: oneshot::Receiver<Ended>,
    told: watch::Sender<Option<Exit>>,
    file: ConnectionFile,
) {
    let how = loop {
        tokio::select! {
            () = output.ready() => output.take(&app, |bytes| kernel.tail.borrow_mut().push(bytes)),
            how = &mut exit => break how.map_or(Exit::LOST, |(exit, _)| exit),
        }
    };
    drop(file);
    output.command_ended();
    while !output.is_settled() {
        let mut taken = 0;
        output.take(&app, |bytes| {
            taken = bytes.len();
            kernel.tail.borrow_mut().push(bytes);
        });
        if taken == 0 {
            break;
        }
    }
    told.send_replace(Some(how));
    output.discard();
}
