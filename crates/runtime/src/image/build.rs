//! Builds: an operator's recipe becomes a sealed layer and a manifest.

mod bootstrap;
mod python;
mod run;
mod steps;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::error::ImageError;
use super::{Bind, ResolvedImage};

pub use run::{BuildRequest, Built, build};

/// Runs the steps of a build where they can harm nothing.
#[async_trait]
pub trait Builder: Send + Sync {
    /// Runs the steps one after the other, as the sandbox's root, in one sandbox on the job's base,
    /// with the host's network. Answers the directory that holds what they changed, as an overlay
    /// upper directory with owners as the sandbox's root sees them, beneath `job.scratch`. Whoever
    /// built may leave mount points behind in `/run`, `/tmp`, `/dev`, `/proc` and `/sys`: sealing
    /// drops what lies there. A step that ends badly is [`ImageError::Step`]; nothing runs on.
    async fn run(&self, job: BuildJob) -> Result<PathBuf, ImageError>;
}

/// What a [`Builder`] is given.
#[derive(Debug, Clone)]
pub struct BuildJob {
    /// The image being built, for messages.
    pub image: String,
    /// The root to run on.
    pub base: ResolvedImage,
    /// What to run, in order.
    pub steps: Vec<BuildStep>,
    /// Shown read-only inside besides the base's own, in this order. The first is a folder at
    /// `/run/build` (its mount point is the builder's to make); the others lie beneath it, or over
    /// files that the base has.
    pub binds: Vec<Bind>,
    /// An empty folder on the store's file system, the builder's alone; removed after the build.
    pub scratch: PathBuf,
    /// Told of each step as it starts, by [`BuildJob::starting`].
    pub progress: ProgressSink,
}

impl BuildJob {
    /// Tells that the step of this index starts; sealing counts as one more step.
    pub fn starting(&self, index: usize) {
        if let Some(step) = self.steps.get(index) {
            self.progress
                .step(index + 1, self.steps.len() + 1, &step.title);
        }
    }
}

/// One program to run in a build.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildStep {
    /// A few words for the progress bar.
    pub title: String,
    /// The program and its arguments; the first is an absolute path inside.
    pub argv: Vec<String>,
    /// The whole environment. It may hold credentials of the host's package clients.
    pub env: BTreeMap<String, String>,
    /// It is ended, and the build with it, when it takes longer.
    pub timeout: Duration,
}

impl fmt::Debug for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildStep")
            .field("title", &self.title)
            .field("argv", &self.argv)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// How far a build has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Counted from 1.
    pub step: usize,
    /// How many steps there are.
    pub of: usize,
    /// A few words on what is done now.
    pub message: String,
}

/// Where progress goes; cheap to clone.
#[derive(Clone)]
pub struct ProgressSink(Arc<dyn Fn(Progress) + Send + Sync>);

impl ProgressSink {
    /// Calls this on each change; it must return quickly.
    pub fn new(sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Tells nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    /// Passes a step on.
    pub fn step(&self, step: usize, of: usize, message: impl Into<String>) {
        (self.0)(Progress {
            step,
            of,
            message: message.into(),
        });
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}
