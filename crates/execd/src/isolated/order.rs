//! Pure. What a caller asks of a session, checked: nothing in it means "default" any more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use barchan_jail::session::How;
use barchan_wire::execd::isolated::{
    Bind, EnvPassthrough, Mode, Overlay, PassMode, Profile, SessionSpec, UidMode,
};
use barchan_wire::limits::{ISOLATED_BINDS_MAX, ISOLATED_OVERLAYS_MAX, PATH_BYTES_MAX};

use crate::environment::Variables;
use crate::fault::{Fault, Kind};

/// A tree that a session is to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Where it lies in the sandbox.
    pub(crate) source: PathBuf,
    /// Where it appears in the session.
    pub(crate) target: PathBuf,
    /// How.
    pub(crate) how: How,
    /// Of an overlay: whether its changes can be told and committed.
    pub(crate) persist: bool,
}

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// Trees, those that hold others first.
    pub(crate) trees: Vec<Wanted>,
    /// How many of them are overlays; they are numbered from 0.
    pub(crate) overlays: usize,
    /// Where runs start.
    pub(crate) cwd: PathBuf,
    /// The request with everything filled in.
    pub(crate) spec: SessionSpec,
    /// Without use for so long, it is destroyed.
    pub(crate) idle: Option<Duration>,
}

/// What the strict profile takes for a secret.
const SECRETS: [&str; 9] = [
    "*_API_KEY",
    "*_TOKEN",
    "*_SECRET",
    "*_PASSWORD",
    "AWS_*",
    "ALI_*",
    "ALIYUN_*",
    "K8S_*",
    "KUBE_*",
];

/// Where the kernel's own files are, which nothing may cover or bring elsewhere.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];
/// What belongs to the sandbox's system: a session may see it or work on an overlay of it.
const SYSTEM: [&str; 11] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
];

/// Checks a request.
///
/// # Errors
/// What in the request makes no sense or is not to be had.
pub(crate) fn check(mut spec: SessionSpec) -> Result<Order, Fault> {
    if spec.uid_mode == Some(UidMode::Userns) {
        let message = "`uid_mode` userns is not to be had: a session's user is one of the \
                       sandbox's; leave it out or give setpriv";
        return Err(Fault::new(Kind::Unavailable, message));
    }
    if spec.uid == Some(u32::MAX) || spec.gid == Some(u32::MAX) {
        return bad("4294967295 is nobody's id: to the kernel it means \"unchanged\"");
    }
    if spec.gid.is_some() && spec.uid.is_none() {
        return bad("`gid` needs `uid`");
    }
    let overlays: Vec<Overlay> = spec
        .workspace
        .iter()
        .chain(spec.overlays.iter().flatten())
        .cloned()
        .collect();
    let Some(first) = overlays.first() else {
        return bad("give `workspace` or `overlays`: a session needs a place to work in");
    };
    if overlays.len() > ISOLATED_OVERLAYS_MAX {
        return bad(format!("more than {ISOLATED_OVERLAYS_MAX} overlays"));
    }
    let cwd = PathBuf::from(&first.path);
    let mut trees = Vec::new();
    let mut layers = 0;
    for overlay in &overlays {
        trees.push(of_overlay(overlay, &mut layers)?);
    }
    trees.extend(further(&spec)?);
    sort(&mut trees)?;
    let idle = spec.idle_timeout_seconds.filter(|seconds| *seconds > 0);
    let profile = *spec.profile.get_or_insert_default();
    spec.share_net.get_or_insert(profile == Profile::Balanced);
    spec.overlays = Some(overlays);
    Ok(Order {
        trees,
        overlays: layers,
        cwd,
        idle: idle.map(|seconds| Duration::from_secs(seconds.min(IDLE_S_MAX))),
        spec,
    })
}

/// Longer times are as good as this one: a hundred years.
const IDLE_S_MAX: u64 = 3_200_000_000;

fn bad<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(Kind::BadRequest, message))
}

fn of_overlay(overlay: &Overlay, layers: &mut usize) -> Result<Wanted, Fault> {
    let path = path(&overlay.path)?;
    let mode = overlay.mode.unwrap_or_default();
    if mode != Mode::Overlay && overlay.persist.is_some() {
        return bad(format!(
            "`persist` of {} goes with the mode overlay only",
            overlay.path
        ));
    }
    let how = match mode {
        Mode::Rw => How::ReadWrite,
        Mode::Ro => How::ReadOnly,
        Mode::Overlay => {
            *layers += 1;
            How::Overlay(*layers - 1)
        }
    };
    Ok(Wanted {
        source: path.clone(),
        target: path,
        how,
        persist: overlay.persist.unwrap_or(true),
    })
}

fn further(spec: &SessionSpec) -> Result<Vec<Wanted>, Fault> {
    let writable = spec.extra_writable.iter().flatten().map(|path| Bind {
        source: path.clone(),
        ..Bind::default()
    });
    let binds: Vec<Bind> = writable
        .chain(spec.binds.iter().flatten().cloned())
        .collect();
    if binds.len() > ISOLATED_BINDS_MAX {
        return bad(format!(
            "more than {ISOLATED_BINDS_MAX} entries of `binds` and `extra_writable`"
        ));
    }
    let wanted = binds.iter().map(|bind| {
        let source = path(&bind.source)?;
        let target = bind.dest.as_deref().filter(|dest| !dest.is_empty());
        Ok(Wanted {
            target: target.map_or_else(|| Ok(source.clone()), path)?,
            source,
            how: match bind.readonly {
                Some(true) => How::ReadOnly,
                _ => How::ReadWrite,
            },
            persist: false,
        })
    });
    wanted.collect()
}

/// A path that means the same to everybody.
fn path(text: &str) -> Result<PathBuf, Fault> {
    let shown: String = text.chars().take(200).collect();
    let mut names = text.split('/').skip(1);
    let clean = text == "/" || names.all(|name| !matches!(name, "" | "." | ".."));
    if !text.starts_with('/') || !clean || text.contains('\0') {
        return bad(format!("{shown:?} is no clean absolute path"));
    }
    if text.len() > PATH_BYTES_MAX {
        return bad(format!("{shown:?} … is longer than {PATH_BYTES_MAX} bytes"));
    }
    Ok(PathBuf::from(text))
}

/// Those that hold others come first; no two have the same place, and none covers the kernel's.
fn sort(trees: &mut [Wanted]) -> Result<(), Fault> {
    trees.sort_by_key(|tree| tree.target.components().count());
    let mut seen = BTreeSet::new();
    for tree in trees {
        let shown = tree.target.display();
        if !seen.insert(&tree.target) {
            return bad(format!("{shown} is mounted twice"));
        }
        if lies_in(&tree.target, &KERNEL) {
            return bad(format!(
                "nothing can be mounted at {shown}: it is the kernel's"
            ));
        }
        if tree.target == Path::new("/") && !matches!(tree.how, How::Overlay(_)) {
            return bad("/ can only be an overlay; without one it is read-only");
        }
    }
    Ok(())
}

fn lies_in(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether a session may have this place of the sandbox in this way. `place` is where the path in
/// the request really leads.
///
/// # Errors
/// For what belongs to the system and would be written to, and for the kernel's files.
pub(crate) fn permit(place: &Path, how: How) -> Result<(), Fault> {
    let shown = place.display();
    if lies_in(place, &KERNEL) {
        return bad(format!("{shown} is the kernel's and stays where it is"));
    }
    if how == How::ReadWrite && (lies_in(place, &SYSTEM) || place == Path::new("/")) {
        return bad(format!(
            "{shown} belongs to the sandbox's system and is not in the list of what a session may \
             write to; take an overlay of it, or `readonly`"
        ));
    }
    Ok(())
}

/// What of the sandbox's variables a session sees.
pub(crate) fn visible(all: Variables, profile: Profile, pass: &EnvPassthrough) -> Variables {
    let named = |name: &str| pass.keys.iter().any(|key| matches(name, key));
    let secret = |name: &str| SECRETS.iter().any(|pattern| matches(name, pattern));
    let seen = |name: &String| match pass.mode {
        PassMode::Allow => named(name),
        PassMode::Deny => !named(name) && (profile == Profile::Balanced || !secret(name)),
    };
    all.into_iter().filter(|(name, _)| seen(name)).collect()
}

/// Whether a name is of a pattern, in which `*` at the start and at the end stands for anything.
fn matches(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.to_ascii_uppercase(), pattern.to_ascii_uppercase());
    let inner = pattern.strip_prefix('*');
    let rest = inner.unwrap_or(&pattern);
    match (inner.is_some(), rest.strip_suffix('*')) {
        (true, Some(middle)) => name.contains(middle),
        (true, None) => name.ends_with(rest),
        (false, Some(start)) => name.starts_with(start),
        (false, None) => name == rest,
    }
}

#[cfg(test)]
mod tests;
