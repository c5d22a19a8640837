//! What this process takes of its host, as `/proc` tells.

use std::fs;

/// Memory, in bytes, and open descriptors; 0 where `/proc` does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) resident_bytes: u64,
    pub(super) descriptors: u64,
}

/// Looks.
pub(super) fn usage() -> Usage {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64);
    Usage {
        resident_bytes: resident_bytes(&status),
        // One of them was open for counting.
        descriptors: descriptors.saturating_sub(1),
    }
}

fn resident_bytes(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_memory_and_descriptors() {
        let usage = usage();
        assert!(
            usage.resident_bytes > 4096 && usage.descriptors > 2,
            "{usage:?}"
        );
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t   12 kB\n"), 12 * 1024);
        assert_eq!(resident_bytes("VmRSS: many"), 0);
    }
}
