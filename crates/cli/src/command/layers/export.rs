//! `barchan layers export`: what a sandbox wrote, brought to a folder under review.

mod spool;
mod tell;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use barchan_archive::export::{Consent, Plan, Sort, Target, Wish, review};
use barchan_archive::{UnpackLimits, shown};
use barchan_client::DiffForm;

use super::compared;
use crate::args::{Export, Global, Source};
use crate::output::Output;
use crate::server;
use crate::stop::Stop;
use spool::Spool;

/// The exit code when something was held back.
const HELD_BACK: u8 = 3;
/// Most entries of one export.
const ENTRIES_MAX: u64 = 1_000_000;
/// How many names of the folder itself are judged with those below it.
const CONTEXT_NAMES: usize = 2;

pub(super) async fn run(global: &Global, mut flags: Export, output: &Output) -> Result<u8> {
    let consent = consent(&flags)?;
    let mut stop = Stop::listen().context("cannot listen for signals")?;
    let archive = tokio::select! {
        archive = spooled(global, &mut flags, output) => archive?,
        code = stop.asked() => return Ok(code),
    };
    let wish = Wish {
        root: flags.root.as_deref().map(|root| root.as_bytes().to_vec()),
        context: context(flags.dir()),
        limits: UnpackLimits {
            entries_max: ENTRIES_MAX,
            bytes_max: flags.max_bytes,
        },
    };
    let dir = flags.dir().to_owned();
    let approved = consent.approved.clone();
    // It changes nothing, so it may be left alone when the program is told to stop.
    let reviewing = tokio::task::spawn_blocking(move || reviewed(archive, wish, &dir, &consent));
    let mut work = tokio::select! {
        work = reviewing => work.context("the review broke off")??,
        code = stop.asked() => return Ok(code),
    };
    warn_of_unknown(&approved, &work.plan, output);
    if !flags.dry_run {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (dir, is_told) = (flags.dir().to_owned(), Arc::clone(&is_stopped));
        let mut applying = tokio::task::spawn_blocking(move || applied(work, &dir, &is_told));
        let done = tokio::select! {
            done = &mut applying => done,
            code = stop.asked() => {
                // What is half written goes away before the program does.
                is_stopped.store(true, Ordering::Relaxed);
                drop(applying.await);
                return Ok(code);
            }
        };
        work = done.context("the export broke off")??;
    }
    tell::tell(&work.root, work.outside, &work.plan, &flags, output)?;
    Ok(match work.plan.is_whole() {
        true => 0,
        false => HELD_BACK,
    })
}

/// The archive in a file without a name: what is reviewed and what is applied are the same bytes.
async fn spooled(global: &Global, flags: &mut Export, output: &Output) -> Result<File> {
    let mut spool = Spool::new(flags.dir(), flags.max_bytes)?;
    let bar = output.transfer(None);
    let done = match flags.source()? {
        Source::Archive(path) => spool.copy(path, &bar).await,
        Source::Sandbox(sandbox) => {
            let client = server::connect(global).await?;
            let id = server::find(&client, sandbox).await?;
            let to = compared::pinned(&client, &id, flags.to).await?;
            let layers = (flags.from.or(Some(0)), to);
            let download = compared::begin(&client, &id, layers, DiffForm::Tar).await?;
            let done = spool.receive(download, &bar).await;
            flags.to = to;
            done
        }
    };
    bar.finish_and_clear();
    done?;
    spool.finish().await
}

/// What was reviewed, on its way.
struct Work {
    archive: File,
    root: Vec<u8>,
    outside: u64,
    plan: Plan,
    target: Target,
}

// BOUNDARY: sandbox → host. Test: what_a_hostile_sandbox_wrote_stays_in_the_folder
fn reviewed(mut archive: File, wish: Wish, dir: &Path, consent: &Consent) -> Result<Work> {
    let found = review(&mut archive, wish).context("cannot review the archive; nothing is done")?;
    let (root, outside) = (found.root_path(), found.outside);
    let target = Target::open(dir)?;
    let plan = Plan::new(found, &target, consent)?;
    Ok(Work {
        archive,
        root,
        outside,
        plan,
        target,
    })
}

fn applied(mut work: Work, dir: &Path, is_stopped: &AtomicBool) -> Result<Work> {
    if !work.target.is_there() {
        let shown = dir.display();
        std::fs::create_dir(dir).with_context(|| format!("cannot make the folder {shown}"))?;
        work.target = Target::open(dir)?;
    }
    let is_stopped = || is_stopped.load(Ordering::Relaxed);
    let done = work
        .plan
        .apply(&mut work.archive, &work.target, &is_stopped);
    done.with_context(|| {
        let shown = dir.display();
        format!("cannot bring all to {shown}; what came stays, and the same command goes on")
    })?;
    Ok(work)
}

fn consent(flags: &Export) -> Result<Consent> {
    let approved = flags.approve.iter().map(|path| approval(path));
    Ok(Consent {
        approved: approved.collect::<Result<_>>()?,
        is_for_all: flags.approve_all,
        may_remove: flags.delete,
    })
}

/// A path, behind the word for what is not plain: `link:a`. A name that begins so is written
/// `./link:a`.
fn approval(given: &OsStr) -> Result<(Sort, Vec<u8>)> {
    let bytes = given.as_bytes();
    let named = Sort::NAMED.into_iter().find_map(|sort| {
        let rest = bytes.strip_prefix(sort.word()?.as_bytes())?;
        Some((sort, rest.strip_prefix(b":")?))
    });
    let (sort, path) = named.unwrap_or((Sort::Plain, bytes));
    Ok((sort, exact(OsStr::from_bytes(path))?))
}

/// A path below the folder as the table shows it, without a slash at its end.
fn exact(path: &OsStr) -> Result<Vec<u8>> {
    let parts = path.as_bytes().split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|it| !it.is_empty() && *it != b".").collect();
    if path.as_bytes().starts_with(b"/") || parts.is_empty() || parts.contains(&&b".."[..]) {
        let path = shown(path.as_bytes());
        bail!("`{path}` names no entry: approve paths as the table shows them");
    }
    Ok(parts.join(&b'/'))
}

fn warn_of_unknown(approved: &HashSet<(Sort, Vec<u8>)>, plan: &Plan, output: &Output) {
    let told = plan.told();
    for (sort, path) in approved {
        let mut found = told
            .iter()
            .filter(|line| line.item.path == *path)
            .peekable();
        let path = shown(path);
        if found.peek().is_none() {
            output.warn(&format!(
                "`{path}` is approved, but nothing is brought there"
            ));
        } else if found.all(|line| line.item.sort() != *sort) {
            output.warn(&format!(
                "`{path}` is approved as something else than it is now: look at it again"
            ));
        }
    }
}

/// The last names of the folder: it may be one itself that tools obey.
fn context(dir: &Path) -> Vec<Vec<u8>> {
    let whole = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
    let whole: PathBuf = whole.unwrap_or_else(|_| dir.to_owned());
    let names = whole.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_bytes().to_vec()),
        _ => None,
    });
    let names: Vec<Vec<u8>> = names.collect();
    let skipped = names.len().saturating_sub(CONTEXT_NAMES);
    names.into_iter().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_exact_paths_below_the_folder() {
        for (path, expected) in [
            (".envrc", Some((Sort::Plain, ".envrc"))),
            ("./a//b/", Some((Sort::Plain, "a/b"))),
            ("a/*", Some((Sort::Plain, "a/*"))),
            ("set_id:a", Some((Sort::SetId, "a"))),
            ("link:./a/b", Some((Sort::Link, "a/b"))),
            ("gone:link:a", Some((Sort::Gone, "link:a"))),
            ("./link:a", Some((Sort::Plain, "link:a"))),
            ("file:a", Some((Sort::Plain, "file:a"))),
            ("link:", None),
            ("link:/a", None),
            ("/a", None),
            ("a/../b", None),
            (".", None),
            ("", None),
        ] {
            let found = approval(OsStr::new(path)).ok();
            let expected = expected.map(|(sort, path)| (sort, path.as_bytes().to_vec()));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn the_last_names_of_the_folder_count() {
        let home = tempfile::TempDir::new().unwrap();
        std::fs::create_dir_all(home.path().join("a/b/c")).unwrap();
        for (dir, expected) in [
            ("a/b/c", ["b", "c"]),
            ("a/b/../b", ["a", "b"]),
            ("a/new", ["a", "new"]),
        ] {
            let found = context(&home.path().join(dir));
            assert_eq!(
                found,
                expected.map(|name| name.as_bytes().to_vec()),
                "{dir}"
            );
        }
    }
}
