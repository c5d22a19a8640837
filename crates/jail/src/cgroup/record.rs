//! Where launchers of this state directory have made groups.
//!
//! A launcher makes its groups below the one it was started in where it can, so that whoever
//! limits it limits its sandboxes; the next one may be started in another and would not find what
//! was left.

use std::fs;
use std::path::{Path, PathBuf};

/// The file that remembers, relative to the state directory, which is the working directory.
pub(super) const FILE: &str = "jail/groups";

/// The folders that were written down, as far as they are not among `own`.
pub(super) fn elsewhere(file: &Path, own: &[&Path]) -> Vec<PathBuf> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let folders = text.lines().map(PathBuf::from);
    folders
        .filter(|folder| !own.contains(&folder.as_path()))
        .collect()
}

/// Writes the folders down. Without the file, the worst is an empty group that stays.
pub(super) fn write(file: &Path, folders: &[&Path]) {
    let lines = folders
        .iter()
        .map(|folder| format!("{}\n", folder.display()));
    let _ = fs::write(file, lines.collect::<String>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_elsewhere_is_told() {
        let file = std::env::temp_dir().join(format!("barchan-groups-{}", std::process::id()));
        let (here, there) = (Path::new("/a/barchan-1"), Path::new("/b/barchan-1"));
        assert!(elsewhere(&file, &[]).is_empty());
        write(&file, &[here, there]);
        assert_eq!(elsewhere(&file, &[here]), [there]);
        fs::remove_file(&file).unwrap();
    }
}
