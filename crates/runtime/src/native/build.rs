//! Runs the steps of an image's build in a sandbox with the host's network.
//!
//! A build sandbox is like any other but for its network, its kept writable layer and the trees it
//! is shown. Its entrypoint is the steps, one after the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use barchan_jail::guest::Boot;
use barchan_jail::proto::{Answer, IdMode, Phase, Request, Status};
use barchan_jail::spec::{Keepsake, Limits, Network, Spec};

use super::{Native, from_failure, internal, to_bind};
use crate::RuntimeError;
use crate::image::{BuildJob, Builder, ImageError};

/// How often a build is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Where the steps leave the number of the one that runs; sealing drops what lies in /run.
const STEP_FILE: &str = "run/step";
/// Longest text of all steps together: one argument of a program, as Linux allows it.
const SCRIPT_BYTES_MAX: usize = 128 * 1024 - 1;

#[async_trait]
impl Builder for Native {
    async fn run(&self, job: BuildJob) -> Result<PathBuf, ImageError> {
        let id = uuid::Uuid::new_v4().to_string();
        let fail =
            |words: String| failed(&job, 0, "set up", format!("failed: {words}"), String::new());
        let spec = self.build_spec(&id, &job).map_err(&fail)?;
        let result = match self.ask(Request::Create(Box::new(spec))).await {
            Err(error) => Err(fail(error.message)),
            Ok(_) => self.follow(&id, &job).await,
        };
        let result = match result {
            Ok(()) => self.settle(&id).await.map_err(|error| fail(error.message)),
            error => error,
        };
        // Whatever happened, the build's sandbox goes; its writable layer is the caller's.
        let _ = self.ask(Request::Delete(id)).await;
        result.map(|()| job.scratch.join("upper"))
    }
}

impl Native {
    /// The launcher opens only what lies beneath the state directory.
    pub(super) fn beneath_state(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, RuntimeError> {
        let inside = |path: &PathBuf| path.strip_prefix(&self.settings.state).map(PathBuf::from);
        paths
            .iter()
            .map(inside)
            .collect::<Result<_, _>>()
            .map_err(|_| internal("a layer of the image lies outside the state directory"))
    }

    fn build_spec(&self, id: &str, job: &BuildJob) -> Result<Spec, String> {
        let script = script(job);
        if script.len() > SCRIPT_BYTES_MAX {
            return Err(format!(
                "the steps are longer than {SCRIPT_BYTES_MAX} bytes together"
            ));
        }
        let layers = self
            .beneath_state(&job.base.layers)
            .map_err(|error| error.message)?;
        let scratch = self.beneath_state(std::slice::from_ref(&job.scratch));
        let binds = job.base.binds.iter().chain(&job.binds).cloned();
        Ok(Spec {
            id: id.to_owned(),
            layers,
            binds: binds.map(to_bind).collect(),
            volumes: Vec::new(),
            gpus: None,
            boot: Boot {
                id: id.to_owned(),
                entrypoint: vec!["/bin/sh".to_owned(), "-c".to_owned(), script],
                env: BTreeMap::from([("PATH".to_owned(), job.base.path.clone())]),
                cwd: "/".to_owned(),
                ..Boot::default()
            },
            limits: Limits::default(),
            network: Network::Host,
            from: None,
            upper: scratch.map_err(|error| error.message)?.pop(),
            note: String::new(),
            keepsake: Keepsake::default(),
        })
    }

    /// Waits for the end of the build and tells of each step.
    async fn follow(&self, id: &str, job: &BuildJob) -> Result<(), ImageError> {
        let deadline = job.steps.iter().map(|step| step.timeout).sum::<Duration>();
        let followed = tokio::time::timeout(deadline, async {
            let mut told = 0;
            loop {
                let step = current_step(&job.scratch);
                (told..step).for_each(|index| job.starting(index));
                told = told.max(step);
                match self.build_status(id).await {
                    Some(Phase::Running | Phase::Paused) => tokio::time::sleep(LOOK).await,
                    ended => return (step, ended),
                }
            }
        });
        let (step, reason) = match followed.await {
            Ok((_, Some(Phase::Exited(0)))) => return Ok(()),
            Ok((step, Some(Phase::Exited(124)))) => (step, "took too long".to_owned()),
            Ok((step, Some(Phase::Exited(code)))) => (step, format!("exited with {code}")),
            Ok((step, ended)) => (step, format!("was lost with its sandbox ({ended:?})")),
            Err(_) => (current_step(&job.scratch), "took too long".to_owned()),
        };
        let output = match self.ask(Request::Log(id.to_owned())).await {
            Ok(Answer::Log(text)) => text,
            _ => String::new(),
        };
        let title = job
            .steps
            .get(step.wrapping_sub(1))
            .map_or("set up", |step| &step.title);
        Err(failed(job, step, title, reason, output))
    }

    async fn build_status(&self, id: &str) -> Option<Phase> {
        match self.ask(Request::List).await {
            Ok(Answer::Sandboxes(all)) => {
                let mine = |status: &Status| (status.id == id).then_some(status.phase);
                all.iter().find_map(mine)
            }
            _ => None,
        }
    }

    async fn settle(&self, id: &str) -> Result<(), RuntimeError> {
        if self.hello().ids != IdMode::OwnRange {
            return Ok(());
        }
        match self.ask(Request::Settle(id.to_owned())).await? {
            Answer::Failed(failure) => Err(from_failure(failure)),
            _ => Ok(()),
        }
    }
}

/// The number of the step that runs, from 1; 0 before the first. The steps are the operator's own,
/// and still only a few bytes of the file are looked at.
fn current_step(scratch: &Path) -> usize {
    use std::io::Read;
    let mut text = String::new();
    let file = fs::File::open(scratch.join("upper").join(STEP_FILE));
    let read = file.and_then(|file| file.take(16).read_to_string(&mut text));
    read.ok()
        .and_then(|_| text.trim().parse().ok())
        .unwrap_or(0)
}

/// The steps as one shell script that stops at the first that fails and exits with its code.
fn script(job: &BuildJob) -> String {
    let mut script = "mkdir -p /run; exec </dev/null\n".to_owned();
    for (number, step) in job.steps.iter().enumerate() {
        let env: Vec<_> = step
            .env
            .iter()
            .map(|(key, value)| quote(&format!("{key}={value}")))
            .collect();
        let argv: Vec<_> = step.argv.iter().map(|word| quote(word)).collect();
        let _ = writeln!(
            script,
            "echo {} >/{STEP_FILE}; timeout {} env -i {} {} || exit",
            number + 1,
            step.timeout.as_secs().max(1),
            env.join(" "),
            argv.join(" ")
        );
    }
    script
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn failed(job: &BuildJob, step: usize, title: &str, reason: String, output: String) -> ImageError {
    let (image, of) = (job.image.clone(), job.steps.len());
    ImageError::Step {
        image,
        step,
        of,
        title: title.to_owned(),
        reason,
        output,
    }
}
