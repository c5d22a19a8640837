//! File systems of kind ext4: made by the host's own program, mounted by the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Command;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::faults::at;

/// Makes one in `image`, with what `source` holds.
pub(super) fn make(
    size_bytes: u64,
    options: &[&str],
    source: &Path,
    image: &Path,
) -> io::Result<()> {
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-m", "0"])
        .args(options)
        .args([source, image])
        .env_clear()
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .output()
        .map_err(at("run mke2fs"))?;
    if made.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&made.stderr).trim().to_owned();
    Err(io::Error::other(format!(
        "mke2fs of {size_bytes} bytes: {words}"
    )))
}

/// Mounts one, nowhere: without set-id bits and devices, and without notes of reading.
pub(super) fn mount(device: &Path, options: &[&str]) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", device)?;
    for option in options {
        rustix::mount::fsconfig_set_flag(context.as_fd(), *option)?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(rustix::mount::fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}
