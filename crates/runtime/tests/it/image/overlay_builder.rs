//! A builder out of tools that every system has: a user and mount namespace, an overlay, chroot.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use barchan_runtime::image::{BuildJob, Builder, ImageError};
use tokio::process::Command;

/// Runs steps one after the other in a root of their own, with the host's network. All files belong
/// to the caller, who is root inside.
pub(super) struct OverlayBuilder;

/// The same with all ids as they are: for packages with other owners than root. Only for root.
pub(super) struct RootBuilder;

#[async_trait]
impl Builder for OverlayBuilder {
    async fn run(&self, job: BuildJob) -> Result<PathBuf, ImageError> {
        run(job, &["--user", "--map-root-user"]).await
    }
}

#[async_trait]
impl Builder for RootBuilder {
    async fn run(&self, job: BuildJob) -> Result<PathBuf, ImageError> {
        run(job, &[]).await
    }
}

async fn run(job: BuildJob, ids: &[&str]) -> Result<PathBuf, ImageError> {
    for folder in ["upper", "work", "root"] {
        fs::create_dir(job.scratch.join(folder)).unwrap();
    }
    let script = job.scratch.join("script");
    fs::write(&script, text(&job)).unwrap();
    let mut unshare = Command::new("unshare");
    unshare
        .args(ids)
        .args(["--mount", "--pid", "--fork", "--kill-child"]);
    unshare.args(["/bin/sh", "-eu"]).arg(&script).env_clear();
    unshare.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    (0..job.steps.len()).for_each(|index| job.starting(index));
    let output = unshare.kill_on_drop(true).output().await.unwrap();
    if output.status.success() {
        return Ok(job.scratch.join("upper"));
    }
    let printed = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let step = fs::read_to_string(job.scratch.join("step")).unwrap_or_default();
    let step = step.trim().parse::<usize>().unwrap_or(0);
    let title = job
        .steps
        .get(step.wrapping_sub(1))
        .map_or("setting up", |step| &step.title);
    Err(ImageError::Step {
        image: job.image.clone(),
        step,
        of: job.steps.len(),
        title: title.to_owned(),
        reason: format!("ended with {}", output.status),
        output: printed,
    })
}

fn text(job: &BuildJob) -> String {
    let scratch = job.scratch.display();
    let layers: Vec<_> = job
        .base
        .layers
        .iter()
        .map(|layer| layer.display().to_string())
        .collect();
    let mut text = format!(
        "root={scratch}/root\n\
         mount --make-rprivate /\n\
         dirs=upperdir={scratch}/upper,workdir={scratch}/work\n\
         mount -t overlay overlay -o userxattr,lowerdir={},$dirs $root\n\
         for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $root/$folder; done\n\
         for node in dev/null dev/zero dev/full dev/random dev/urandom; do\n\
         : >$root/$node; mount --bind /$node $root/$node\n\
         done\n\
         mkdir $root/dev/shm; chmod 1777 $root/dev/shm $root/tmp; mkdir -p $root/run/build\n\
         ln -s /proc/self/fd $root/dev/fd\n\
         mount -t proc proc $root/proc\n",
        layers.join(":"),
    );
    for bind in job.base.binds.iter().chain(&job.binds) {
        let (source, target) = (
            quoted(&bind.source),
            quoted(bind.target.strip_prefix("/").unwrap()),
        );
        let _ = writeln!(text, "mount --rbind {source} $root/{target}");
        let _ = writeln!(text, "mount -o remount,bind,ro,nosuid,nodev $root/{target}");
    }
    for (number, step) in job.steps.iter().enumerate() {
        let _ = writeln!(text, "echo {} >{scratch}/step", number + 1);
        let env: Vec<_> = step
            .env
            .iter()
            .map(|(k, v)| quoted(Path::new(&format!("{k}={v}"))))
            .collect();
        let argv: Vec<_> = step
            .argv
            .iter()
            .map(|word| quoted(Path::new(word)))
            .collect();
        let seconds = step.timeout.as_secs();
        let _ = writeln!(
            text,
            "timeout {seconds} chroot $root /usr/bin/env -i {} {}",
            env.join(" "),
            argv.join(" ")
        );
    }
    text
}

fn quoted(word: &Path) -> String {
    format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))
}
