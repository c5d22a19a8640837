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
    for place in own_places(&own, &mounts) {
        let name = format!("barchan-{state_id}");
        let hierarchy = if place.controllers.is_empty() {
            v2(&place, &name)
        } else {
            v1(&place, &name)
        };
        found.extend(hierarchy);
    }
    Hierarchies(found)
}

fn v1(place: &Place, name: &str) -> Option<Hierarchy> {
    let kind = v1_kind(&place.controllers)?;
    let parent = place.own.join(name);
    is_made(&parent).then_some(Hierarchy { kind, parent })
}

/// The v2 hierarchy below the nearest group that can hand on all controllers there are, or else
/// with what our own can.
fn v2(place: &Place, name: &str) -> Option<Hierarchy> {
    let wanted = offered(&place.mount);
    let homes = homes(&place.own, &place.mount);
    let made = |home: &Path| {
        let parent = home.join(name);
        is_made(&parent).then(|| {
            let kind = enable(home, &parent);
            Hierarchy { kind, parent }
        })
    };
    let full = homes.iter().find_map(|home| {
        let hands_on = wanted.iter().all(|it| can_hand_on(home, it));
        hands_on.then(|| made(home)).flatten()
    });
    full.or_else(|| made(&place.own))
}

/// Our own group and those above it, nearest first. A group that holds processes can have no
/// controllers for groups below it, and ours does wherever nobody made one just for us: a shell of
/// a desktop, an ordinary service. Groups above hold none, and most have theirs on already.
fn homes(own: &Path, mount: &Path) -> Vec<PathBuf> {
    own.ancestors()
        .take_while(|group| group.starts_with(mount))
        .map(Path::to_owned)
        .collect()
}

/// The controllers we use that a hierarchy has.
fn offered(group: &Path) -> Vec<&'static str> {
    let offered = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    let has = |name: &&str| offered.split_whitespace().any(|it| it == *name);
    ["cpu", "memory", "pids"].into_iter().filter(has).collect()
}

/// Whether groups below `group` can have a controller; turns it on if it is off.
fn can_hand_on(group: &Path, name: &str) -> bool {
    let control = group.join("cgroup.subtree_control");
    let on = fs::read_to_string(&control).unwrap_or_default();
    on.split_whitespace().any(|it| it == name)
        || super::write(&control, &format!("+{name}")).is_ok()
}

fn is_made(parent: &Path) -> bool {
    fs::create_dir(parent).is_ok() || is_usable(parent)
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

/// Turns on what there is for the sandboxes' groups; what cannot be is missing, and so reported.
fn enable(home: &Path, parent: &Path) -> Kind {
    let has = |name: &str| [home, parent].iter().all(|group| can_hand_on(group, name));
    Kind::V2 {
        cpu: has("cpu"),
        memory: has("memory"),
        pids: has("pids"),
    }
}

/// A hierarchy and where this process is in it.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The names of its controllers; empty for v2.
    controllers: String,
    mount: PathBuf,
    own: PathBuf,
}

/// The places of this process, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own_places(own: &str, mounts: &str) -> Vec<Place> {
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
            Some(Place {
                controllers: controllers.to_owned(),
                mount: PathBuf::from(mount.point),
                own: Path::new(mount.point).join(below.trim_start_matches('/')),
            })
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
        let found = own_places(own, mounts);
        let found: Vec<_> = found
            .iter()
            .map(|place| (place.controllers.as_str(), place.own.to_str().unwrap()))
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

    #[test]
    fn groups_are_made_below_the_nearest_that_hands_its_controllers_on() {
        const ALL: &str = "cpuset cpu io memory pids";
        for (on, wanted) in [
            (["", "a", "a/b"].as_slice(), "a/b"),
            (&["", "a"], "a"),
            (&[""], ""),
            (&[], "a/b"),
        ] {
            let mount = std::env::temp_dir().join(format!("barchan-v2-{}", std::process::id()));
            let place = Place {
                controllers: String::new(),
                own: mount.join("a/b"),
                mount,
            };
            fs::create_dir_all(&place.own).unwrap();
            for group in ["", "a", "a/b"] {
                let folder = place.mount.join(group);
                fs::write(folder.join("cgroup.controllers"), ALL).unwrap();
                let control = folder.join("cgroup.subtree_control");
                match on.contains(&group) {
                    true => fs::write(control, ALL).unwrap(),
                    // What cannot be written refuses, as a group that holds processes does.
                    false => fs::create_dir(control).unwrap(),
                }
            }
            let found = v2(&place, "barchan-x").map(|hierarchy| hierarchy.parent);
            fs::remove_dir_all(&place.mount).unwrap();
            assert_eq!(
                found,
                Some(place.mount.join(wanted).join("barchan-x")),
                "{on:?}"
            );
        }
    }
}
