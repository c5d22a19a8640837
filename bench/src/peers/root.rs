//! The root file system of other sandboxes: an image's layers and trees, read-only.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};

use crate::args::PeersOrder;

/// Where version 2 control groups are mounted beside those of version 1.
const SECOND_GROUPS: &str = "/sys/fs/cgroup/unified";

/// Where the root is.
pub(super) fn folder(order: &PeersOrder) -> PathBuf {
    order.work.join("root")
}

/// Assembles it in this process's mount namespace.
pub(super) fn assemble(order: &PeersOrder) -> Result<()> {
    let root = folder(order);
    fs::create_dir_all(&root)?;
    if let [only] = order.layers.as_slice() {
        mount_bind(only, &root).context("bind the image's only layer")?;
    } else {
        let layers: Vec<_> = order
            .layers
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        let options = CString::new(format!("lowerdir={}", layers.join(":")))?;
        mount(
            "overlay",
            &root,
            "overlay",
            MountFlags::RDONLY,
            options.as_c_str(),
        )
        .context("stack the image's layers")?;
    }
    for bind in &order.binds {
        let (source, target) = bind.split_once('=').context("a tree is SOURCE=TARGET")?;
        let target = root.join(target.trim_start_matches('/'));
        mount_bind_recursive(source, &target)
            .with_context(|| format!("bind {source} to {}", target.display()))?;
    }
    Ok(())
}

/// Takes version 2 control groups out of sight, where version 1 ones are there as well.
pub(super) fn hide_second_groups() {
    if Path::new(SECOND_GROUPS).exists() {
        let _ = unmount(SECOND_GROUPS, UnmountFlags::DETACH);
    }
}
