//! What a state directory's sandboxes left behind on this host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Every process, mount, control group and loop device that still belongs to a state directory, in
/// words. Empty when all is clean.
#[must_use]
pub fn of(state: &Path) -> Vec<String> {
    let mut found = processes(state);
    found.extend(mounts(state));
    found.extend(groups(state));
    found.extend(loop_devices(state));
    found
}

/// Processes that were started for it, or that stand in it.
fn processes(state: &Path) -> Vec<String> {
    let text = state.to_string_lossy();
    let own = std::process::id().to_string();
    numbers("/proc")
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let place = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let belongs = command.contains(&*text) || place.starts_with(state);
            belongs.then(|| format!("process {pid}: {command}"))
        })
        .collect()
}

fn numbers(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(name)
    })
}

fn mounts(state: &Path) -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = state.to_string_lossy();
    text.lines()
        .filter(|line| line.contains(&*own))
        .map(|line| format!("mount {line}"))
        .collect()
}

/// Groups of every hierarchy that carry the state directory's id, which is its device and inode.
fn groups(state: &Path) -> Vec<String> {
    let Ok(found) = fs::metadata(state) else {
        return Vec::new();
    };
    let name = format!("barchan-{:x}-{:x}", found.dev(), found.ino());
    let mut groups = Vec::new();
    let mut open = vec![Path::new("/sys/fs/cgroup").to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy() == name {
                    groups.push(format!("control group {}", path.display()));
                } else {
                    open.push(path);
                }
            }
        }
    }
    groups
}

fn loop_devices(state: &Path) -> Vec<String> {
    let own = state.to_string_lossy();
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices
        .filter_map(|device| {
            let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
            let name = device.file_name().to_string_lossy().into_owned();
            backing
                .contains(&*own)
                .then(|| format!("{name} on {}", backing.trim()))
        })
        .collect()
}
