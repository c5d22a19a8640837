//! Where a disk's next files get their inodes.
//!
//! Without a journal ext4 takes no inode again that was freed within the last minutes. From the
//! start of a group of 8,192 on it passes over those one by one, and does so again for each new
//! file: up to 0.5 ms, wherever much was removed before much is made, as when one installation
//! replaces another or one sealed step follows the other. The kernel can be told to begin
//! elsewhere: behind what was used of late. Source: `inode_goal` in the kernel's text on ext4.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// What one step of a sandbox uses besides its own files: folders, and what overlayfs tries out.
const STEP: u64 = 64;

/// Tells the kernel to begin behind what was used since it was last told, on the disk of which
/// `folder` is a part; `free` is how many were free then. Gives back how many are free now.
///
/// # Errors
/// Where the kernel cannot be told: the disk works as well, and slower.
pub fn begin_elsewhere(device: &Path, folder: impl AsFd, free: Option<u64>) -> io::Result<u64> {
    let found = rustix::fs::fstatvfs(folder)?;
    let used = free.unwrap_or(found.f_files).abs_diff(found.f_ffree);
    let file = file_of(device).ok_or(io::ErrorKind::NotFound)?;
    let goal = fs::read_to_string(&file)?;
    let goal = goal.trim().parse().map_err(io::Error::other)?;
    fs::write(&file, next(goal, used, found.f_files).to_string())?;
    Ok(found.f_ffree)
}

/// How many are free on the disk of which `folder` is a part, if that is another number than
/// before.
#[must_use]
pub fn has_changed(folder: impl AsFd, free: Option<u64>) -> bool {
    rustix::fs::fstatvfs(folder).is_ok_and(|found| Some(found.f_ffree) != free)
}

/// The inode to begin at; the first is 1, and behind the last one it begins anew.
fn next(goal: u64, used: u64, count: u64) -> u64 {
    goal.saturating_add(used).saturating_add(STEP) % count.max(1) + 1
}

fn file_of(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?;
    Some(Path::new("/sys/fs/ext4").join(name).join("inode_goal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_behind_what_was_used_and_anew_behind_the_last() {
        for (goal, used, count, expected) in [
            (0, 0, 1000, STEP + 1),
            (100, 200, 1000, 300 + STEP + 1),
            (999, 0, 1000, STEP),
            (u64::MAX, 1, 1000, u64::MAX % 1000 + 1),
            (5, 5, 0, 1),
        ] {
            let found = next(goal, used, count);
            assert_eq!(found, expected, "{goal} {used} {count}");
            assert!(found >= 1 && found <= count.max(1));
        }
    }
}
