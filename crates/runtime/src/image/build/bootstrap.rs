//! A Debian system of its own: unpacked on the host's, then installed on what was unpacked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::steps::{INSTALL_TIMEOUT, shell};
use super::{BuildJob, BuildStep, Builder, ProgressSink};
use crate::image::clients::{ClientSources, GIVEN};
use crate::image::error::ImageError;
use crate::image::{Bind, PATH_DEFAULT, ResolvedImage};

/// Beneath the last job's upper directory: the system, complete.
pub(super) const WHOLE: &str = ".whole";

const DUMP_TIMEOUT: Duration = Duration::from_secs(10);

/// What the host's apt is set to; nothing where there is none.
pub(super) async fn apt_settings(sources: &ClientSources) -> String {
    let mut command = Command::new("apt-config");
    command
        .args(["dump", "Acquire"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .env_clear();
    command.env("PATH", PATH_DEFAULT).env("LC_ALL", "C");
    command.envs(
        sources
            .env
            .get("APT_CONFIG")
            .map(|path| ("APT_CONFIG", path)),
    );
    match tokio::time::timeout(DUMP_TIMEOUT, command.output()).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    }
}

/// Runs the first job, on the host's image, and answers the root for the second one, with what is
/// to be shown to it besides.
pub(super) async fn unpack(
    job: BuildJob,
    env: &BTreeMap<String, String>,
    builder: &dyn Builder,
) -> Result<(ResolvedImage, Bind), ImageError> {
    let host = job.base.clone();
    let step = shell(
        "fetching a minimal system",
        FETCH,
        &[],
        INSTALL_TIMEOUT,
        env,
    );
    let upper = builder
        .run(BuildJob {
            steps: vec![step],
            ..job
        })
        .await?;
    let image = ResolvedImage {
        name: "bootstrap".to_owned(),
        binds: Vec::new(),
        layers: vec![upper.join("srv/root")],
        path: PATH_DEFAULT.to_owned(),
        ..host
    };
    let debs = Bind {
        source: upper.join("srv/debs"),
        target: PathBuf::from(GIVEN).join("debs"),
    };
    Ok((image, debs))
}

/// The second job's steps: those of the recipe between installing and gathering.
pub(super) fn around(steps: Vec<BuildStep>, env: &BTreeMap<String, String>) -> Vec<BuildStep> {
    let install = shell(
        "installing a minimal system",
        INSTALL,
        &[],
        INSTALL_TIMEOUT,
        env,
    );
    let gather = shell("gathering the system", GATHER, &[], INSTALL_TIMEOUT, env);
    std::iter::once(install)
        .chain(steps)
        .chain([gather])
        .collect()
}

/// Progress of two jobs as of one.
pub(super) fn counted(sink: &ProgressSink, before: usize, of: usize) -> ProgressSink {
    let sink = sink.clone();
    ProgressSink::new(move |progress| sink.step(before + progress.step, of, progress.message))
}

const FETCH: &str = include_str!("bootstrap_fetch.sh");
const INSTALL: &str = include_str!("bootstrap_install.sh");
const GATHER: &str = include_str!("bootstrap_gather.sh");
