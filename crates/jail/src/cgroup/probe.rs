//! Finds the hierarchies that this process may make groups in.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Hierarchies, Hierarchy, Kind};

/// Looks at what is mounted and where this process is, makes the folder `barchan-<state id>` in
/// each usable hierarchy, and keeps those where that worked.
#[must_use]
pub fn probe(state_id: &str) -> Hierarchies {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = Vec::new();
    for (controllers, folder) in own_folders(&own, &mounts) {
        let kind = match controllers.as_str() {
            "" => Some(Kind::V2 {
                cpu: false,
                memory: false,
                pids: false,
            }),
            list => v1_kind(list),
        };
        let Some(kind) = kind else { continue };
        let parent = folder.join(format!("barchan-{state_id}"));
        if fs::create_dir(&parent).is_err() && !is_usable(&parent) {
            continue;
        }
        let kind = if controllers.is_empty() {
            enable_v2(&folder, &parent)
        } else {
            kind
        };
        found.push(Hierarchy { kind, parent });
    }
    Hierarchies(found)
}

/// Whether a folder that is there already may be used: one can make groups in it.
fn is_usable(parent: &Path) -> bool {
    let probe = parent.join("probe");
    fs::create_dir(&probe).is_ok() && fs::remove_dir(&probe).is_ok()
}

fn v1_kind(controllers: &str) -> Option<Kind> {
    controllers.split(',').find_map(|name| match name {
        "cpu" => Some(Kind::V1Cpu),
        "memory" => Some(Kind::V1Memory),
        "pids" => Some(Kind::V1Pids),
        _ => None,
    })
}

/// Turns on what the v2 hierarchy offers, in the launcher's own group and in the folder below it;
/// a group that holds processes refuses, and then the controllers are missing and so reported.
fn enable_v2(own: &Path, parent: &Path) -> Kind {
    let has = |name: &str| {
        [own, parent].iter().all(|group| {
            let offered = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
            offered.split_whitespace().any(|offer| offer == name)
                && super::write(&group.join("cgroup.subtree_control"), &format!("+{name}")).is_ok()
        })
    };
    Kind::V2 {
        cpu: has("cpu"),
        memory: has("memory"),
        pids: has("pids"),
    }
}

/// Each hierarchy's controllers (empty for v2) and the folder of this process in it, from
/// `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own_folders(own: &str, mounts: &str) -> Vec<(String, PathBuf)> {
    own.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let mount = mounts
                .lines()
                .find_map(|mount| mount_of(mount, controllers))?;
            let below = path
                .strip_prefix(mount.root.trim_end_matches('/'))
                .unwrap_or(path);
            Some((
                controllers.to_owned(),
                Path::new(mount.point).join(below.trim_start_matches('/')),
            ))
        })
        .collect()
}

struct Mount<'a> {
    root: &'a str,
    point: &'a str,
}

/// The mount that a mountinfo line describes, if it is the hierarchy of these controllers.
fn mount_of<'a>(line: &'a str, controllers: &str) -> Option<Mount<'a>> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
    let same = match name {
        "cgroup2" => controllers.is_empty(),
        "cgroup" if !controllers.is_empty() => controllers
            .split(',')
            .all(|wanted| options.split(',').any(|option| option == wanted)),
        _ => false,
    };
    let mut place = place.split(' ').skip(3);
    same.then_some(Mount {
        root: place.next()?,
        point: place.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, mounts: &str, wanted: &[(&str, &str)]) {
        let found = own_folders(own, mounts);
        let found: Vec<_> = found
            .iter()
            .map(|(names, path)| (names.as_str(), path.to_str().unwrap()))
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_hybrid_host_has_both() {
        check(
            "8:pids:/\n4:memory:/machine/a\n0::/\n",
            "35 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            &[
                ("pids", "/sys/fs/cgroup/pids/"),
                ("memory", "/sys/fs/cgroup/memory/machine/a"),
                ("", "/sys/fs/cgroup/unified/"),
            ],
        );
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root_of_the_mount() {
        check(
            "0::/docker/abc/inner\n",
            "41 31 0:38 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            &[("", "/sys/fs/cgroup/inner")],
        );
    }

    #[test]
    fn joined_controllers_are_one_hierarchy() {
        check(
            "3:cpu,cpuacct:/a\n",
            "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            &[("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/a")],
        );
    }
}
