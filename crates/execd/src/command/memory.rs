//! Whether the kernel killed something because memory ran out.

use std::cell::Cell;

use crate::small_file;

/// Looks at the kernel's count of such kills: that of the control group where the sandbox can see
/// its own, else that of the whole machine, which makes the answer a good guess.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The count at the last look.
    kills: Cell<Option<u64>>,
}

impl Memory {
    /// Takes the count from which on kills are noticed. Cheap after the first time.
    pub(crate) fn watch(&self) {
        if self.kills.get().is_none() {
            self.kills.set(kills());
        }
    }

    /// Whether there was such a kill since the last time it was asked for.
    pub(crate) fn ran_out(&self) -> bool {
        let now = kills();
        let before = self.kills.replace(now);
        matches!((before, now), (Some(before), Some(now)) if now > before)
    }
}

fn kills() -> Option<u64> {
    [
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
        "/proc/vmstat",
    ]
    .into_iter()
    .find_map(|path| count(&small_file::read(path)?))
}

/// The number behind `oom_kill`, which all three files call it.
fn count(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_each_of_the_files() {
        for (text, wanted) in [
            (
                "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n",
                Some(2),
            ),
            ("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", Some(5)),
            ("nr_free_pages 1\noom_kill 0\n", Some(0)),
            ("oom_kill_disable 0\n", None),
        ] {
            assert_eq!(count(text), wanted, "{text}");
        }
        assert!(count(&small_file::read("/proc/vmstat").unwrap()).is_some());
    }
}
