//! Our allow list of system calls beside the one that container engines use by default.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde::Deserialize;

use super::arena::Arena;
use super::row::{Namespaces, Outcome};

/// Calls that engines allow and we do not, and why.
const REFUSED: [(&str, &str); 9] = [
    (
        "unshare setns",
        "a namespace of one's own brings every capability in it",
    ),
    (
        "mount umount2 pivot_root fsopen fsconfig fsmount fspick move_mount open_tree \
         mount_setattr",
        "a sandbox has no right to mount, and old mount code has been a way out",
    ),
    (
        "clone3",
        "its flags lie in memory where no filter sees them; libraries fall back to clone",
    ),
    (
        "keyctl add_key request_key",
        "keys are the kernel's, not the sandbox's",
    ),
    (
        "mbind get_mempolicy set_mempolicy set_mempolicy_home_node",
        "where memory lies is the host's decision",
    ),
    ("pidfd_getfd", "takes descriptors out of other processes"),
    ("reboot syslog", "the host's affairs"),
    (
        "epoll_ctl_old epoll_wait_old",
        "numbers that never had a call",
    ),
    (
        "statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules setxattrat \
         getxattrat listxattrat removexattrat open_tree_attr file_getattr file_setattr",
        "newer than this list: to be looked at one by one",
    ),
];

/// Calls that we allow and the engines' list, depending on its age, does not.
const ALLOWED: [(&str, &str); 2] = [
    (
        "futex_waitv futex_wake futex_wait futex_requeue",
        "new forms of a call that is allowed",
    ),
    (
        "cachestat fchmodat2 map_shadow_stack mseal",
        "act on the caller's own files and memory; newer than the oldest list that we meet",
    ),
];

/// Calls that the C library's headers may not name yet; they have one number on all machines.
const NEW_NAMES: [(&str, u32); 18] = [
    ("cachestat", 451),
    ("fchmodat2", 452),
    ("map_shadow_stack", 453),
    ("futex_wake", 454),
    ("futex_wait", 455),
    ("futex_requeue", 456),
    ("statmount", 457),
    ("listmount", 458),
    ("lsm_get_self_attr", 459),
    ("lsm_set_self_attr", 460),
    ("lsm_list_modules", 461),
    ("mseal", 462),
    ("setxattrat", 463),
    ("getxattrat", 464),
    ("listxattrat", 465),
    ("removexattrat", 466),
    ("open_tree_attr", 467),
    ("file_getattr", 468),
];

/// Calls that the kernel lets through whatever a filter says: only its own probes can make them,
/// and anybody else is killed for it.
const UNFILTERED: [u32; 2] = if cfg!(target_arch = "x86_64") {
    [335, 336]
} else {
    [u32::MAX; 2]
};

/// The numbers that are looked at: all there are, and some to come.
const NUMBERS: u32 = 480;

#[tokio::test(flavor = "multi_thread")]
async fn the_filter_in_a_sandbox_is_the_one_that_was_compiled() {
    let arena = Arena::new().await;
    let attack = format!("missing_calls:{NUMBERS}");
    let missing = |outcomes: Vec<Outcome>| -> BTreeSet<u32> {
        serde_json::from_str(&outcomes[0].detail).unwrap()
    };
    let inside = missing(arena.inside(&[&attack]).await);
    let outside = missing(arena.outside(Namespaces, &[&attack]).await);
    let is_refused = |number: &u32| !is_listed(*number) && !UNFILTERED.contains(number);
    let refused: BTreeSet<u32> = (0..NUMBERS).filter(is_refused).collect();
    assert!(
        refused.is_subset(&inside),
        "got through: {:?}",
        &refused - &inside
    );
    // What the kernel itself has not got, nobody can allow.
    let allowed_and_missing = &(&inside - &outside) - &refused;
    assert!(
        allowed_and_missing.is_empty(),
        "lost: {allowed_and_missing:?}"
    );
    let made_the_difference = (&refused - &outside).len();
    assert!(made_the_difference > 50, "{made_the_difference} calls only");
}

#[test]
fn what_differs_from_container_engines_is_written_down() {
    let numbers = numbers();
    let theirs = allowed_by_engines();
    let theirs: BTreeSet<&str> = theirs.iter().map(String::as_str).collect();
    let known = |name: &&str| numbers.contains_key(*name);
    let ours = |name: &&str| is_listed(numbers[*name]);
    let written = |list: &'static [(&str, &str)]| -> BTreeSet<&str> {
        list.iter()
            .flat_map(|(names, _)| names.split_whitespace())
            .collect()
    };
    let (refused, allowed) = (written(&REFUSED), written(&ALLOWED));
    let names = || numbers.keys().map(String::as_str);
    let only_theirs = names().filter(|name| theirs.contains(name) && !ours(name));
    let only_ours = names().filter(|name| !theirs.contains(name) && ours(name));
    let unwritten: Vec<_> = only_theirs.filter(|name| !refused.contains(name)).collect();
    assert!(
        unwritten.is_empty(),
        "refused, and nobody says why: {unwritten:?}"
    );
    let unwritten: Vec<_> = only_ours.filter(|name| !allowed.contains(name)).collect();
    assert!(
        unwritten.is_empty(),
        "allowed, and nobody says why: {unwritten:?}"
    );
    let untrue: Vec<_> = refused
        .iter()
        .filter(|name| known(name) && ours(name))
        .collect();
    assert!(
        untrue.is_empty(),
        "said to be refused, and allowed: {untrue:?}"
    );
    let untrue: Vec<_> = allowed.iter().filter(|name| !ours(name)).collect();
    assert!(
        untrue.is_empty(),
        "said to be allowed, and refused: {untrue:?}"
    );
    let nameless: Vec<_> = (0..NUMBERS)
        .filter(|number| is_listed(*number) && !numbers.values().any(|it| it == number))
        .collect();
    assert!(nameless.is_empty(), "allowed without a name: {nameless:?}");
}

/// Every call's number on this machine, as the C compiler knows them.
fn numbers() -> BTreeMap<String, u32> {
    let script = "echo '#include <asm/unistd.h>' | cc -E -dM -";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let named = text.lines().filter_map(|line| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    let mut all: BTreeMap<_, _> = named.collect();
    assert!(all.len() > 250, "no kernel headers: install linux-libc-dev");
    all.extend(NEW_NAMES.map(|(name, number)| (name.to_owned(), number)));
    all
}

/// A rule of the engines' profile, as far as it matters here.
#[derive(Deserialize)]
struct Rule {
    names: Vec<String>,
    action: String,
    #[serde(default)]
    includes: Includes,
}

#[derive(Default, Deserialize)]
struct Includes {
    #[serde(default)]
    arches: Vec<String>,
    #[serde(default)]
    caps: Vec<String>,
}

/// What the default profile lets a container do whose root has a sandbox's capabilities.
fn allowed_by_engines() -> BTreeSet<String> {
    const PROFILE: &str = "/usr/share/containers/seccomp.json";
    #[derive(Deserialize)]
    struct Profile {
        syscalls: Vec<Rule>,
    }
    let text = fs::read(PROFILE).unwrap_or_else(|error| {
        panic!("{PROFILE}: {error}: install golang-github-containers-common")
    });
    let profile: Profile = serde_json::from_slice(&text).unwrap();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        _ => "arm64",
    };
    let held = |capability: &String| {
        capability == "CAP_SYS_CHROOT" // The one of a sandbox's that profiles ask for.
    };
    let applies = |rule: &Rule| {
        let arches = &rule.includes.arches;
        rule.action == "SCMP_ACT_ALLOW"
            && (arches.is_empty() || arches.iter().any(|it| it == architecture))
            && rule.includes.caps.iter().all(held)
    };
    let rules = profile.syscalls.into_iter().filter(applies);
    rules.flat_map(|rule| rule.names).collect()
}

/// Whether our filter has more to say to a call than that it is missing.
fn is_listed(number: u32) -> bool {
    const ENOSYS: u32 = 0x0005_0000 | 38;
    answer(number) != ENOSYS
}

/// What the kernel makes of a call of this machine, its arguments being 0.
fn answer(number: u32) -> u32 {
    let program = barchan_jail::seccomp::filter();
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let step = &program[at];
        let holds = match step.code {
            0x20 => {
                accumulator = match step.k {
                    0 => number,
                    4 => ARCHITECTURE,
                    _ => 0,
                };
                None
            }
            0x15 => Some(accumulator == step.k),
            0x35 => Some(accumulator >= step.k),
            0x45 => Some(accumulator & step.k != 0),
            0x06 => return step.k,
            code => panic!("instruction {code:#x}"),
        };
        at += 1 + holds.map_or(0, |holds| {
            usize::from(if holds { step.jt } else { step.jf })
        });
    }
}

/// `AUDIT_ARCH` of linux/audit.h.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else {
    0xC000_00B7
};
