//! What an OCI runtime is told: the same namespaces and limits as a sandbox of ours has.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::root;
use crate::args::PeersOrder;

/// What the container's root may do: what containers are given by default.
const CAPABILITIES: [&str; 11] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// The folder of the description with limits, or of the one without.
pub(super) fn folder(order: &PeersOrder, limits: bool) -> PathBuf {
    order
        .work
        .join(if limits { "limited" } else { "unlimited" })
}

/// Writes both descriptions.
pub(super) fn write(order: &PeersOrder) -> Result<()> {
    for limits in [true, false] {
        let folder = folder(order, limits);
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join("config.json"),
            description(order, limits).to_string(),
        )?;
    }
    Ok(())
}

fn description(order: &PeersOrder, limits: bool) -> Value {
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    let resources = if limits {
        json!({
            "memory": {"limit": 2_u64 << 30},
            "cpu": {"quota": 100_000, "period": 100_000},
            "pids": {"limit": 4096},
        })
    } else {
        json!({})
    };
    json!({
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": root::folder(order), "readonly": true},
        "process": {
            "terminal": false,
            "user": {"uid": 0, "gid": 0},
            "cwd": "/",
            "args": [order.program],
            "env": ["PATH=/usr/bin:/bin"],
            "noNewPrivileges": true,
            "capabilities": {
                "bounding": CAPABILITIES,
                "effective": CAPABILITIES,
                "permitted": CAPABILITIES,
            },
        },
        "mounts": [
            mount("/proc", "proc", &[]),
            mount("/dev", "tmpfs", &["nosuid", "mode=755", "size=65536k"]),
            mount("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666"]),
            mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777"]),
            mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
            mount("/tmp", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        ],
        "linux": {"namespaces": namespaces, "resources": resources},
    })
}

fn mount(place: &str, kind: &str, options: &[&str]) -> Value {
    json!({
        "destination": place,
        "type": kind,
        "source": kind,
        "options": options,
    })
}
