//! Starts the processes of commands.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use barchan_jail::child::{self, Child, Ids, SpawnError};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::Errno;
use rustix::process::Pid;

use super::follow::{Running, follow};
use super::input::{self, Input};
use super::order::{Order, What};
use super::record::Source;
use super::{Birth, Command, pipe, tree};
use crate::app::App;
use crate::environment::{Variables, to_c};
use crate::fault::{Fault, Kind, text};
use crate::files::expand::{escape, expand};
use crate::program::{self, Missing};

/// Longest script passed as an argument, in bytes: the kernel's limit for one argument, less room
/// for its end.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;
/// How a longer script reaches the shell: as descriptor 3, closed again for what the script runs.
/// Sourced, not run by name, so that `$0`, `exit` and the like are as with -c.
const SOURCE: &CStr = c". /proc/self/fd/3";

/// Everything that exec needs.
struct Prepared {
    program: CString,
    argv: Vec<CString>,
    variables: Variables,
    cwd: PathBuf,
    script: Option<OwnedFd>,
}

/// Starts what is ordered, remembers it and follows it to its end.
///
/// # Errors
/// When the order cannot be tried at all: a missing directory, an impossible user, no processes
/// left. A program that does not exist is no error but a command that ended with 127.
pub(crate) fn start(app: &Rc<App>, order: &Order) -> Result<Rc<Command>, Fault> {
    let id = order.id.clone().map_or_else(random_id, Ok)?;
    let prepared = match prepare(app, order, &id)? {
        Ok(prepared) => prepared,
        Err((missing, message)) => return Ok(unbegun(app, order, id, missing, message)),
    };
    let (stdout, out) = pipe::pair().map_err(no_pipe)?;
    let (stderr, err) = match order.merges {
        true => (None, None),
        false => pipe::pair()
            .map(|(output, end)| (Some(output), Some(end)))
            .map_err(no_pipe)?,
    };
    let (input, stdin) = match order.stdin {
        false => (None, None),
        true => input::pair()
            .map(|(input, end)| (Some(input), Some(end)))
            .map_err(no_pipe)?,
    };
    let ends = Ends {
        stdin: stdin.as_ref().unwrap_or(&app.null).as_fd(),
        stdout: out.as_fd(),
        stderr: err.as_ref().unwrap_or(&out).as_fd(),
    };
    app.memory.watch();
    match spawn(app, order, &prepared, &ends) {
        Ok(pid) => {
            let exit = app.reaper.watch(pid);
            let command = Rc::new(Command::new(birth(order, id, Some(pid), input)));
            app.commands.add(&command);
            let running = Running {
                command: Rc::clone(&command),
                exit,
                stdout,
                stderr,
            };
            tokio::task::spawn_local(follow(Rc::clone(app), running, order.timeout));
            Ok(command)
        }
        Err(error) if error.step == "exec" => {
            let program = escape(prepared.program.as_bytes());
            let missing = match error.errno {
                Errno::NOENT => Missing::NotFound,
                _ => Missing::NotExecutable,
            };
            let message = format!("{program}: {}", text(error.errno));
            Ok(unbegun(app, order, id, missing, message))
        }
        Err(error) => {
            let ids = order.person.as_ref().map(|person| &person.ids);
            Err(refusal(error, ids, &prepared.cwd))
        }
    }
}

/// The child's ends of its three streams.
struct Ends<'a> {
    stdin: BorrowedFd<'a>,
    stdout: BorrowedFd<'a>,
    stderr: BorrowedFd<'a>,
}

fn birth(order: &Order, id: String, pid: Option<Pid>, input: Option<Input>) -> Birth {
    let content = match &order.what {
        What::Script(script) => script.clone(),
        What::Program(argv) => argv.join(" "),
    };
    Birth {
        id,
        content,
        pid,
        input,
        leave: order.leave,
        is_keyed: order.id.is_some(),
        is_hook: order.is_hook,
        scope: None,
    }
}

/// A command whose program is not there. It ended as it would in a shell, which says why.
fn unbegun(app: &App, order: &Order, id: String, missing: Missing, message: String) -> Rc<Command> {
    let command = Rc::new(Command::new(birth(order, id, None, None)));
    app.commands.add(&command);
    let line = format!("{message}\n");
    app.commands
        .record(&command, Source::Stderr, line.as_bytes());
    command.finish_unbegun(missing.code(), message);
    command
}

/// Resolves program, directory and environment; the inner error is a program that is not there.
fn prepare(
    app: &App,
    order: &Order,
    id: &str,
) -> Result<Result<Prepared, (Missing, String)>, Fault> {
    let mut variables = app.environment.now();
    if let Some(person) = &order.person {
        variables.extend(person.variables.clone());
    }
    variables.extend(order.variables.clone());
    variables.insert(tree::MARK.to_owned(), id.to_owned());
    let cwd = match &order.cwd {
        Some(cwd) => app.cwd.join(expand(cwd.as_bytes(), &|name| {
            variables.get(name).cloned()
        })?),
        None => app.cwd.clone(),
    };
    variables.insert("PWD".to_owned(), escape(cwd.as_os_str().as_bytes()));
    let path = variables
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let (program, argv, script) = match &order.what {
        What::Script(script) => {
            let Some(shell) = program::shell(path) else {
                let message = "this image has no shell (neither bash nor sh); give `argv` instead";
                return Ok(Err((Missing::NotFound, message.to_owned())));
            };
            let (script, held) = script_argument(script)?;
            (shell.clone(), vec![shell, c"-c".to_owned(), script], held)
        }
        What::Program(arguments) => {
            let name = arguments.first().map(String::as_str).unwrap_or_default();
            let program = match program::find(name, path, &cwd) {
                Ok(program) => program,
                Err(missing) => {
                    return Ok(Err((missing, format!("{name}: {}", missing.text()))));
                }
            };
            let words = arguments.iter().map(|text| CString::new(text.as_str()));
            let argv = words.collect::<Result<_, _>>();
            let nul = |_| Fault::new(Kind::BadRequest, "`argv` holds a NUL byte");
            (program, argv.map_err(nul)?, None)
        }
    };
    Ok(Ok(Prepared {
        program,
        argv,
        variables,
        cwd,
        script,
    }))
}

/// The argument behind `-c`, and the file of a script that is too long to be one.
fn script_argument(script: &str) -> Result<(CString, Option<OwnedFd>), Fault> {
    if script.len() < ARGUMENT_BYTES_MAX {
        let nul = |_| Fault::new(Kind::BadRequest, "`command` holds a NUL byte");
        return CString::new(script).map_err(nul).map(|text| (text, None));
    }
    let held = hold(script).map_err(|errno| {
        Fault::new(
            Kind::Failed,
            format!("cannot hold the script: {}", text(errno)),
        )
    })?;
    Ok((SOURCE.to_owned(), Some(held)))
}

/// The script in an anonymous file. The shell reads it whole before it runs the first line, which
/// closes the descriptor again.
fn hold(script: &str) -> Result<OwnedFd, Errno> {
    let held = memfd_create("script", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(held);
    let written = file
        .write_all(b"exec 3<&-; ")
        .and_then(|()| file.write_all(script.as_bytes()));
    written.map_err(|error| crate::fault::errno(&error))?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

fn spawn(
    app: &App,
    order: &Order,
    prepared: &Prepared,
    ends: &Ends<'_>,
) -> Result<Pid, SpawnError> {
    let cwd = CString::new(prepared.cwd.as_os_str().as_bytes()).unwrap_or_default();
    child::spawn(&Child {
        program: &prepared.program,
        argv: &prepared.argv,
        env: &to_c(&prepared.variables),
        cwd: &cwd,
        stdin: ends.stdin,
        stdout: ends.stdout,
        stderr: ends.stderr,
        extra: prepared.script.as_ref().map(AsFd::as_fd),
        ids: order.person.as_ref().map(|person| person.ids.clone()),
        tty: false,
        confine: app.confine,
    })
}

/// Why a process could not even be tried.
pub(crate) fn refusal(error: SpawnError, ids: Option<&Ids>, cwd: &Path) -> Fault {
    let why = text(error.errno);
    match error.step {
        "chdir" => {
            let cwd = escape(cwd.as_os_str().as_bytes());
            let message = format!("cannot work in {cwd}: {why}; create it or give another `cwd`");
            Fault::new(Kind::BadRequest, message)
        }
        step @ ("setgroups" | "setgid" | "setuid") => {
            let (uid, gid) = ids.map(|ids| (ids.uid, ids.gid)).unwrap_or_default();
            let message = format!(
                "cannot run as user {uid}, group {gid} ({step}: {why}); this sandbox may not have \
                 that id"
            );
            Fault::new(Kind::BadRequest, message)
        }
        "clone" if error.errno == Errno::AGAIN => Fault::new(
            Kind::Failed,
            "the sandbox has reached its limit of processes; end some or ask for a higher limit",
        ),
        step => Fault::new(
            Kind::Failed,
            format!("cannot start the command ({step}: {why})"),
        ),
    }
}

fn no_pipe(errno: Errno) -> Fault {
    let why = text(errno);
    Fault::new(
        Kind::Failed,
        format!("cannot open a pipe for the command: {why}"),
    )
}

/// 32 hexadecimal digits, unguessable.
pub(crate) fn random_id() -> Result<String, Fault> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Fault::new(Kind::Failed, format!("no randomness: {}", text(errno))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
