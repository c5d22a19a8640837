//! Code contexts: kernels that keep their variables from one cell to the next, spoken to over the
//! Jupyter protocol without a Jupyter server in between.

mod connection;
mod forms;
mod kernel;
mod message;
mod outbox;
pub(crate) mod probe;
pub(crate) mod run;
mod socket;
mod spec;
mod zmtp;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::code::{CodeContext, ContextRequest, SHELL};
use tokio::sync::watch;
use tokio::time::timeout;

use self::kernel::Kernel;
use self::kernel::launch::{self, Launch};
use self::spec::Spec;
use crate::app::App;
use crate::command::start::random_id;
use crate::environment::{Variables, is_variable};
use crate::fault::{Fault, Kind};
use crate::files::expand::expand;
use crate::limits::{CELL_INTERRUPT_MS, CELL_INTERRUPTS_MAX, CONTEXTS_MAX, LANGUAGE_BYTES_MAX};

/// All contexts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Contexts(RefCell<Vec<Rc<Context>>>);

/// One context.
#[derive(Debug)]
pub(crate) struct Context {
    /// Its id: 32 hexadecimal digits.
    pub(crate) id: String,
    /// Its language, in lower case.
    pub(crate) language: String,
    /// Whether it serves requests that name no context.
    is_default: bool,
    cwd: PathBuf,
    /// Environment of its own, on top of the sandbox's.
    variables: Variables,
    kernel: RefCell<Option<Rc<Kernel>>>,
    busy: watch::Sender<bool>,
    /// Whether the cell that runs is to end.
    interrupted: Cell<bool>,
    deleted: Cell<bool>,
}

/// The right to run a cell in a context; only one has it at a time.
#[derive(Debug)]
pub(crate) struct Claim(Rc<Context>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.busy.send_replace(false);
    }
}

impl Contexts {
    /// Whether any context runs a cell.
    pub(crate) fn any_busy(&self) -> bool {
        self.0.borrow().iter().any(|context| *context.busy.borrow())
    }

    /// The context of an id.
    pub(crate) fn get(&self, id: &str) -> Option<Rc<Context>> {
        self.0
            .borrow()
            .iter()
            .find(|context| context.id == id)
            .cloned()
    }

    /// The contexts of a language, or all.
    pub(crate) fn list(&self, language: Option<&str>) -> Vec<Rc<Context>> {
        let all = self.0.borrow();
        let wanted = |it: &&Rc<Context>| language.is_none_or(|language| it.language == language);
        all.iter().filter(wanted).cloned().collect()
    }

    /// Makes a context and starts its kernel, which gets ready meanwhile.
    ///
    /// # Errors
    /// When the request makes no sense, the image has no such kernel, or it cannot be started.
    pub(crate) fn create(
        &self,
        app: &Rc<App>,
        request: ContextRequest,
        is_default: bool,
    ) -> Result<Rc<Context>, Fault> {
        if self.0.borrow().len() >= CONTEXTS_MAX {
            let message = format!("there are {CONTEXTS_MAX} code contexts already; delete some");
            return Err(Fault::new(Kind::InUse, message));
        }
        let language = check_language(&request.language)?;
        let bad = |message: String| Fault::new(Kind::BadRequest, message);
        let mut variables = request.envs;
        let odd = variables
            .iter()
            .find(|(name, value)| !is_variable(name, value));
        if let Some((name, _)) = odd {
            return Err(bad(format!("{name:?} in `envs` is no variable")));
        }
        let all = merge(app.environment.now(), &variables);
        let spec = find(&language, &all)?;
        let cwd = match request.cwd.filter(|cwd| !cwd.is_empty()) {
            Some(cwd) => app
                .cwd
                .join(expand(cwd.as_bytes(), &|name| all.get(name).cloned())?),
            None => app.cwd.clone(),
        };
        if let Err(error) = std::fs::create_dir_all(&cwd) {
            let why = crate::fault::text(crate::fault::errno(&error));
            return Err(bad(format!("cannot work in {}: {why}", cwd.display())));
        }
        variables.remove("PWD");
        let context = Rc::new(Context {
            id: random_id()?,
            language,
            is_default,
            cwd,
            variables,
            kernel: RefCell::default(),
            busy: watch::Sender::new(false),
            interrupted: Cell::new(false),
            deleted: Cell::new(false),
        });
        context.start(app, &spec, all)?;
        self.0.borrow_mut().push(Rc::clone(&context));
        Ok(context)
    }

    /// The context of a language for requests that name none, made when it is first needed.
    ///
    /// # Errors
    /// As for [`Contexts::create`].
    pub(crate) fn default_of(&self, app: &Rc<App>, language: &str) -> Result<Rc<Context>, Fault> {
        let language = check_language(language)?;
        let known = self.list(Some(&language));
        if let Some(context) = known.into_iter().find(|context| context.is_default) {
            return Ok(context);
        }
        let request = ContextRequest {
            language,
            ..ContextRequest::default()
        };
        self.create(app, request, true)
    }

    /// Ends a context with all its processes. A cell that runs in it is told so.
    pub(crate) async fn delete(&self, app: &App, context: &Context) {
        self.0.borrow_mut().retain(|other| other.id != context.id);
        context.deleted.set(true);
        let kernel = context.kernel.borrow().clone();
        if let Some(kernel) = kernel {
            kernel.kill(app, "its context was deleted").await;
        }
    }

    fn is_given(&self, port: u16) -> bool {
        let all = self.0.borrow();
        all.iter().any(|context| {
            let kernel = context.kernel.borrow();
            kernel
                .as_ref()
                .is_some_and(|kernel| kernel.lives() && kernel.ports.contain(port))
        })
    }
}

impl Context {
    /// As answers tell it.
    pub(crate) fn told(&self) -> CodeContext {
        CodeContext {
            id: self.id.clone(),
            language: self.language.clone(),
        }
    }

    /// The right to run a cell, unless one runs.
    pub(crate) fn claim(self: &Rc<Self>) -> Option<Claim> {
        if self.busy.send_replace(true) {
            return None;
        }
        self.interrupted.set(false);
        Some(Claim(Rc::clone(self)))
    }

    /// Its kernel, and why the one before is gone if there was one. To be called under a claim.
    fn kernel(&self, app: &Rc<App>) -> Result<(Rc<Kernel>, Option<String>), Fault> {
        if self.deleted.get() {
            return Err(Fault::new(Kind::Failed, "the context was deleted"));
        }
        let last = self.kernel.borrow().clone();
        match last {
            Some(kernel) if kernel.lives() => Ok((kernel, None)),
            last => {
                let all = merge(app.environment.now(), &self.variables);
                let spec = find(&self.language, &all)?;
                let kernel = self.start(app, &spec, all)?;
                Ok((kernel, last.map(|last| last.obituary())))
            }
        }
    }

    fn start(&self, app: &Rc<App>, spec: &Spec, all: Variables) -> Result<Rc<Kernel>, Fault> {
        let launch = Launch {
            spec,
            mark: &self.id,
            cwd: &self.cwd,
            variables: all,
        };
        let kernel = launch::start(app, launch, |port| app.contexts.is_given(port))?;
        self.kernel.replace(Some(Rc::clone(&kernel)));
        Ok(kernel)
    }

    /// Stops the cell that runs; returns once it has ended. Nothing to do is a success.
    ///
    /// # Errors
    /// When the cell goes on all the same.
    pub(crate) async fn interrupt(&self, app: &App) -> Result<(), Fault> {
        let mut busy = self.busy.subscribe();
        for _ in 0..CELL_INTERRUPTS_MAX {
            if !*busy.borrow_and_update() {
                return Ok(());
            }
            self.interrupted.set(true);
            let kernel = self.kernel.borrow().clone();
            // A kernel that still gets ready would die of it; its cell looks at the flag later.
            if let Some(kernel) = kernel.filter(|kernel| kernel.works()) {
                kernel.interrupt(app).await;
            }
            let ended = busy.wait_for(|busy| !busy);
            if timeout(Duration::from_millis(CELL_INTERRUPT_MS), ended)
                .await
                .is_ok()
            {
                return Ok(());
            }
        }
        let message = "the code goes on in spite of the interrupt; delete its context to end it";
        Err(Fault::new(Kind::Failed, message))
    }
}

fn merge(mut all: Variables, own: &Variables) -> Variables {
    all.extend(own.clone());
    all
}

fn check_language(text: &str) -> Result<String, Fault> {
    let language = text.trim().to_lowercase();
    let message = match language.as_str() {
        "" => "`language` is missing".to_owned(),
        SHELL => format!("{SHELL:?} is the shell and has no contexts; name none to use it"),
        long if long.len() > LANGUAGE_BYTES_MAX => "`language` is no language".to_owned(),
        _ => return Ok(language),
    };
    Err(Fault::new(Kind::BadRequest, message))
}

fn find(language: &str, variables: &Variables) -> Result<Spec, Fault> {
    spec::find(language, variables).map_err(|others| {
        let others = match others.is_empty() {
            true => "none at all".to_owned(),
            false => others.join(", "),
        };
        let message = format!(
            "this image has no kernel for {language:?}; it has: {others}. Install a Jupyter kernel \
             for it, or use another image"
        );
        Fault::new(Kind::BadRequest, message)
    })
}
