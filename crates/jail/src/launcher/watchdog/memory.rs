//! How much memory one process holds that no file system of a fixed size backs.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// A file without a place in any folder, which lives as long as somebody has it open.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryFile {
    /// Its number, the same for all who have it open.
    pub(super) inode: u64,
    /// What is written to it.
    pub(super) bytes: u64,
}

/// The files in memory among the descriptors of a process, of which no more than `patience` are
/// looked at and taken from it.
// BOUNDARY: sandbox → host. Test: a_file_in_memory_counts_once_however_many_have_it_open
pub(super) fn files(pid: i32, patience: &mut usize) -> Vec<MemoryFile> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut found = Vec::new();
    for entry in open.into_iter().flatten().flatten().take(*patience) {
        *patience -= 1;
        let leads = fs::read_link(entry.path()).unwrap_or_default();
        if leads.as_os_str().as_encoded_bytes().starts_with(b"/memfd:")
            && let Ok(file) = fs::metadata(entry.path())
        {
            found.push(MemoryFile {
                inode: file.ino(),
                bytes: file.blocks() * 512,
            });
        }
    }
    found
}

/// Private and shared memory of a process; pages that it shares with others count in full.
pub(super) fn rough_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    sum(&text, ["RssAnon", "RssShmem"])
}

/// The same with its share of what it shares.
pub(super) fn fair_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let fair = text
        .ok()
        .and_then(|text| sum(&text, ["Pss_Anon", "Pss_Shmem"]));
    fair.or_else(|| rough_bytes(pid))
}

/// The values of two lines like `RssAnon:      1234 kB`, in bytes.
fn sum(text: &str, names: [&str; 2]) -> Option<u64> {
    let mut kilobytes = 0;
    for name in names {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        kilobytes += value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    }
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_no_file_backs() {
        let text = "Name:\tRssAnon\nVmRSS:\t  90 kB\nRssAnon:\t  10 kB\nRssFile:\t  60 kB\n\
                    RssShmem:\t  20 kB\n";
        assert_eq!(sum(text, ["RssAnon", "RssShmem"]), Some(30 * 1024));
        assert_eq!(sum("Name:\tkthreadd\n", ["RssAnon", "RssShmem"]), None);
    }

    #[test]
    fn what_is_shared_counts_less_by_the_fair_measure() {
        let own = std::process::id().cast_signed();
        let (rough, fair) = (rough_bytes(own).unwrap(), fair_bytes(own).unwrap());
        assert!(fair > 0 && fair <= rough + (1 << 20), "{rough} {fair}");
    }

    #[test]
    fn no_more_descriptors_are_looked_at_than_said() {
        let own = std::process::id().cast_signed();
        let mut patience = 2;
        files(own, &mut patience);
        assert_eq!(patience, 0);
    }
}
