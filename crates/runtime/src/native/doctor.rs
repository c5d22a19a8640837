//! What isolation this host offers, what is missing, and how to get it.
//!
//! Looks only; whoever wants to know whether sandboxes really start makes one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// One thing a sandbox needs or would like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How it stands.
    pub verdict: Verdict,
    /// What was seen.
    pub detail: String,
    /// The one thing to do about it; empty where nothing is.
    pub remedy: String,
}

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There, and used.
    Good,
    /// Missing or weaker; sandboxes work without, and say so.
    Weaker,
    /// Missing, and nothing safe is possible without it.
    Missing,
}

/// Looks at this host as the calling user would use it.
#[must_use]
pub fn probe() -> Vec<Finding> {
    let root = is_root();
    let mut findings = vec![
        kernel(),
        namespaces(),
        seccomp(),
        overlay(),
        processes_view(),
        way_out(),
    ];
    findings.push(ids(root));
    findings.push(disk(root));
    findings.extend(limits(root));
    findings
}

fn good(name: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        name,
        verdict: Verdict::Good,
        detail: detail.into(),
        remedy: String::new(),
    }
}

fn lacking(name: &'static str, verdict: Verdict, detail: &str, remedy: &str) -> Finding {
    Finding {
        name,
        verdict,
        detail: detail.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// Who asks, by the effective id.
fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_root() -> bool {
    uid() == 0
}

fn kernel() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    match version(&release) {
        found if found >= (5, 19) => good("kernel", release),
        found if found >= (5, 11) => lacking(
            "kernel",
            Verdict::Weaker,
            &format!("{release}: no id-mapped layers"),
            "a kernel of 5.19 or newer shows image files under their own owners",
        ),
        _ => lacking(
            "kernel",
            Verdict::Missing,
            &format!("{release}: no overlayfs in user namespaces"),
            "install a kernel of 5.11 or newer",
        ),
    }
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn namespaces() -> Finding {
    const NAME: &str = "user namespaces";
    if read("/proc/sys/user/max_user_namespaces").is_none_or(|most| most == "0") {
        return lacking(
            NAME,
            Verdict::Missing,
            "user.max_user_namespaces is 0",
            "sysctl -w user.max_user_namespaces=65536",
        );
    }
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text == value);
    if !is_root() && is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return lacking(
            NAME,
            Verdict::Missing,
            "only root may make them",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if !is_root()
        && is(
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        )
    {
        return lacking(
            NAME,
            Verdict::Missing,
            "AppArmor lets ordinary programs make none with rights in it (Ubuntu 23.10 and newer)",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with \
             `userns,` for barchan-jail",
        );
    }
    good(NAME, "allowed")
}

fn seccomp() -> Finding {
    match read("/proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) if actions.contains("errno") => good("system-call filter", "seccomp"),
        _ => lacking(
            "system-call filter",
            Verdict::Missing,
            "this kernel has no seccomp filters",
            "use a kernel built with CONFIG_SECCOMP_FILTER",
        ),
    }
}

fn overlay() -> Finding {
    let known = read("/proc/filesystems").unwrap_or_default();
    if known.lines().any(|line| line.ends_with("overlay")) {
        return good("overlayfs", "known to the kernel");
    }
    lacking(
        "overlayfs",
        Verdict::Missing,
        "not known to the kernel",
        "modprobe overlay",
    )
}

/// A container that masks parts of its /proc may not mount a new one for a sandbox.
fn processes_view() -> Finding {
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let masked = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let masked: Vec<_> = masked.filter(|point| point.starts_with("/proc/")).collect();
    let harmless = |point: &&str| point.starts_with("/proc/sys/fs/binfmt_misc");
    if masked.iter().all(harmless) {
        return good("a /proc of its own", "allowed");
    }
    lacking(
        "a /proc of its own",
        Verdict::Missing,
        &format!("this container masks {}", masked.join(", ")),
        "run the container privileged, or with its system paths unmasked",
    )
}

/// What redirects the connections of sandboxes to whoever judges them.
fn way_out() -> Finding {
    const NAME: &str = "a network of its own";
    const WORD: &str = "nft_tproxy";
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What is built in or loaded has symbols; what could be loaded stands in a list.
    let modules = format!("/lib/modules/{release}/modules.dep");
    let names = |path: &str| {
        let file = File::open(path).map(BufReader::new).ok();
        let lines = file
            .into_iter()
            .flat_map(BufRead::lines)
            .map_while(Result::ok);
        lines.into_iter().any(|line| line.contains(WORD))
    };
    if names("/proc/kallsyms") || names(&modules) {
        return good(NAME, "redirected by nftables, inside each sandbox alone");
    }
    lacking(
        NAME,
        Verdict::Weaker,
        "this kernel does not show nft_tproxy; without it sandboxes have no network",
        "use a kernel built with CONFIG_NF_TABLES and CONFIG_NFT_TPROXY; the server tries it at \
         its start, whatever this says",
    )
}

fn ids(root: bool) -> Finding {
    const NAME: &str = "ids";
    if root {
        return good(NAME, "65,536 of its own for each sandbox");
    }
    if barchan_jail::ids::are_granted(uid()) {
        return good(NAME, "the user's subordinate ids");
    }
    lacking(
        NAME,
        Verdict::Weaker,
        "only root exists inside a sandbox",
        "install newuidmap (package uidmap) and grant 65,536 ids in /etc/subuid and /etc/subgid",
    )
}

fn disk(root: bool) -> Finding {
    const NAME: &str = "disk limit";
    if !root {
        return lacking(
            NAME,
            Verdict::Weaker,
            "writable layers lie in memory, and count as such",
            "start the server as root for writable layers on disk",
        );
    }
    if !program("mke2fs") {
        return lacking(
            NAME,
            Verdict::Missing,
            "mke2fs is not installed",
            "install e2fsprogs",
        );
    }
    if !Path::new("/dev/loop-control").exists() {
        return lacking(NAME, Verdict::Missing, "no loop devices", "modprobe loop");
    }
    good(NAME, "an ext4 image on a loop device for each sandbox")
}

fn limits(root: bool) -> Vec<Finding> {
    let cgroups = read("/proc/self/cgroup").unwrap_or_default();
    let v1 = |name: &str| {
        cgroups.lines().any(|line| {
            line.split(':')
                .nth(1)
                .is_some_and(|list| list.split(',').any(|controller| controller == name))
        })
    };
    let v2 = version_2_controllers();
    let found = |name: &'static str, title: &'static str, remedy: &str| {
        let kind = match (v1(name), v2.split_whitespace().any(|offer| offer == name)) {
            _ if !root => None,
            (true, _) => Some("control group, version 1"),
            (_, true) => Some("control group, version 2"),
            _ => None,
        };
        match kind {
            Some(kind) => good(title, kind),
            None => lacking(
                title,
                Verdict::Weaker,
                "no control group that we may use",
                remedy,
            ),
        }
    };
    vec![
        found(
            "memory",
            "memory limit",
            "start the server as root, or delegate a cgroup to it",
        ),
        found(
            "cpu",
            "CPU limit",
            "start the server as root, or delegate a cgroup to it",
        ),
        pids(found(
            "pids",
            "process limit",
            "start the server as root, or use a kernel of 6.14",
        )),
    ]
}

/// What groups of ours can have on a host with version 2 alone. In a container the top group is not
/// the host's: it holds the container's processes, and hands on only what is on already.
fn version_2_controllers() -> String {
    let top = Path::new("/sys/fs/cgroup");
    let nested = top.join("cgroup.type").exists();
    let file = if nested {
        "cgroup.subtree_control"
    } else {
        "cgroup.controllers"
    };
    std::fs::read_to_string(top.join(file)).unwrap_or_default()
}

/// Since 6.14 a PID namespace has a limit of its own, which needs no control group.
fn pids(by_group: Finding) -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    match by_group.verdict {
        Verdict::Weaker if version(&release) >= (6, 14) => {
            good(by_group.name, "a limit of each sandbox's PID namespace")
        }
        _ => by_group,
    }
}

fn program(name: &str) -> bool {
    [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ]
    .iter()
    .any(|folder| Path::new(folder).join(name).exists())
}
