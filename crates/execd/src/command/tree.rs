//! All processes of a command, so that none of them survives it when it is killed.
//!
//! A process belongs to the tree when its parent does, when its session is one that the tree made,
//! or when it carries the command's mark in the environment it was started with. Parentage alone
//! loses orphans, which become children of PID 1; sessions alone lose whoever calls setsid; the
//! mark, which nobody can guess, finds both, wherever they went. Only a process that left its
//! parent, its session and its environment escapes, which takes intent; it dies with the sandbox.
//! (A supervisor that adopts orphans would see those too, but costs a process per command.)
//!
//! The tree is stopped before it is killed: a stopped process forks no more, so one scan that finds
//! no newcomer proves that the set is complete. Signals go through pidfds that are compared with
//! the start time seen in the scan, so a reused pid is never hit.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use memchr::memmem;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use crate::files::identity::Identity;
use crate::limits::{KILL_MS, SAVE_MS};

/// The variable that carries the mark.
pub(crate) const MARK: &str = "BARCHAN_COMMAND_ID";

/// How much of a process's environment is searched for the mark, in bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 1024 * 1024;
/// Most scans for newcomers before the kill begins anyway.
const SCANS_MAX: usize = 16;

/// One line of /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
    /// In clock ticks since boot; with the pid it names a process for good.
    start: u64,
    /// Ended, but not reaped yet.
    ended: bool,
}

/// The processes of one command.
#[derive(Debug)]
pub(crate) struct Tree {
    mark: String,
    /// Start time by pid.
    members: HashMap<i32, u64>,
    sessions: HashSet<i32>,
    /// Processes of this session's shell that started earlier are none of this tree.
    since: Option<u64>,
}

impl Tree {
    /// The tree of a command whose leader has not been reaped yet, so its pid is still its own.
    pub(crate) fn new(leader: Pid, id: &str) -> Self {
        let pid = leader.as_raw_nonzero().get();
        let start = look_up(pid).map(|leader| leader.start);
        Self {
            mark: format!("{MARK}={id}"),
            members: start.map(|start| (pid, start)).into_iter().collect(),
            sessions: HashSet::from([pid]),
            since: None,
        }
    }

    /// What is left of the tree of a leader that has been reaped: its pid may be another's by now.
    pub(crate) fn orphans(id: &str) -> Self {
        Self {
            mark: format!("{MARK}={id}"),
            members: HashMap::new(),
            sessions: HashSet::new(),
            since: None,
        }
    }

    /// The same without what started before this tick since boot, and its descendants. The leader
    /// is older and belongs to the tree all the same.
    pub(crate) fn sparing_older(mut self, since: u64) -> Self {
        self.since = Some(since);
        self
    }

    /// Sends a signal to everything that lives in the tree.
    pub(crate) fn signal_all(&mut self, signal: Signal) {
        for process in self.living() {
            send(process, signal);
        }
    }

    /// Kills everything in the tree; returns once nothing of it lives, or after some seconds.
    pub(crate) async fn kill(mut self) {
        if self.since.is_some() {
            self.let_leader_end().await;
        }
        let deadline = Instant::now() + Duration::from_millis(KILL_MS);
        loop {
            let living = self.freeze();
            if living.is_empty() || Instant::now() > deadline {
                return;
            }
            for process in living {
                send(process, Signal::KILL);
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Gives a session's shell a moment to save its state.
    async fn let_leader_end(&self) {
        let leader: Vec<Process> = self
            .members
            .keys()
            .filter_map(|pid| look_up(*pid))
            .filter(|it| !it.ended && self.members.get(&it.pid) == Some(&it.start))
            .collect();
        for process in &leader {
            send(*process, Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_millis(SAVE_MS);
        let lives =
            |it: &Process| look_up(it.pid).is_some_and(|now| now.start == it.start && !now.ended);
        while leader.iter().any(lives) && Instant::now() < deadline {
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Stops all members until a scan finds no new one.
    fn freeze(&mut self) -> Vec<Process> {
        let mut stopped = HashSet::new();
        for _ in 0..SCANS_MAX {
            let living = self.living();
            let before = stopped.len();
            for process in &living {
                if stopped.insert((process.pid, process.start)) {
                    send(*process, Signal::STOP);
                }
            }
            if stopped.len() == before {
                return living;
            }
        }
        self.living()
    }

    /// Scans /proc, takes in whoever belongs, and returns the members that live.
    fn living(&mut self) -> Vec<Process> {
        let processes = scan();
        let mark = self.mark.clone();
        self.take_in(&processes, &|pid| carries(pid, &mark));
        let member = |it: &Process| self.members.get(&it.pid) == Some(&it.start);
        processes
            .into_iter()
            .filter(|process| !process.ended && member(process))
            .collect()
    }

    /// What is older than the tree, and its descendants; never a member.
    fn spared(&self, processes: &[Process], own: i32) -> HashSet<i32> {
        let Some(since) = self.since else {
            return HashSet::new();
        };
        let is_member = |it: &Process| self.members.get(&it.pid) == Some(&it.start);
        // Orphans come to either of these, whatever they belonged to.
        let adopts = |it: &Process| it.pid == own || it.pid == 1;
        let older = |it: &&Process| it.start < since && !adopts(it) && !is_member(it);
        let mut spared: HashSet<i32> = processes.iter().filter(older).map(|it| it.pid).collect();
        loop {
            let before = spared.len();
            for process in processes {
                if spared.contains(&process.parent) && !is_member(process) && !adopts(process) {
                    spared.insert(process.pid);
                }
            }
            if spared.len() == before {
                return spared;
            }
        }
    }

    /// Adds all that belong to the tree, until nothing is added any more.
    fn take_in(&mut self, processes: &[Process], marked: &dyn Fn(i32) -> bool) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let spared = self.spared(processes, own);
        let mut outside: Vec<&Process> = processes
            .iter()
            .filter(|it| it.pid != own && !it.ended && !spared.contains(&it.pid))
            .collect();
        let mut first = true;
        loop {
            let before = outside.len();
            outside.retain(|process| {
                let belongs = self.members.contains_key(&process.parent)
                    || self.sessions.contains(&process.session)
                    || (first && marked(process.pid));
                if belongs {
                    self.members.insert(process.pid, process.start);
                    self.sessions.insert(process.session);
                }
                !belongs
            });
            first = false;
            if outside.len() == before {
                return;
            }
        }
    }
}

/// Every process that /proc shows.
fn scan() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(look_up).collect()
}

fn look_up(pid: i32) -> Option<Process> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `pid (name) state parent group session …`; the name may hold anything, `)` included.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let text = String::from_utf8_lossy(stat);
    let pid = text.split(' ').next()?.parse().ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        session,
        start,
        ended: matches!(state, "Z" | "X" | "x"),
    })
}

/// Whether the environment that a process was started with holds the mark.
fn carries(pid: i32, mark: &str) -> bool {
    let path = format!("/proc/{pid}/environ");
    let environment = match read_environment(&path) {
        // The kernel shows the environment of another user's process to that user alone.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => read_as_owner(&path),
        read => read.ok(),
    };
    environment.is_some_and(|environment| holds(&environment, mark))
}

fn read_environment(path: &str) -> std::io::Result<Vec<u8>> {
    let mut environment = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(ENVIRONMENT_BYTES_MAX)
        .read_to_end(&mut environment)?;
    Ok(environment)
}

/// Reads on a thread that works as the file's owner, and ends.
fn read_as_owner(path: &str) -> Option<Vec<u8>> {
    let owner = std::fs::metadata(path).ok()?;
    let owner = Identity::new(owner.uid(), owner.gid());
    let path = path.to_owned();
    let read = move || {
        owner.assume().ok()?;
        read_environment(&path).ok()
    };
    std::thread::Builder::new().spawn(read).ok()?.join().ok()?
}

/// Whether one of the NUL-terminated settings is the mark.
fn holds(environment: &[u8], mark: &str) -> bool {
    memmem::find_iter(environment, mark).any(|at| {
        let starts = at == 0 || environment.get(at - 1) == Some(&0);
        starts && matches!(environment.get(at + mark.len()), Some(0) | None)
    })
}

/// Signals exactly the process that was seen. It may be gone by now, which is as good.
fn send(process: Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    if let Ok(exact) = pidfd_open(pid, PidfdFlags::empty())
        && look_up(process.pid).is_some_and(|now| now.start == process.start)
    {
        let _ = pidfd_send_signal(&exact, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, session: i32) -> Process {
        Process {
            pid,
            parent,
            session,
            start: u64::from(pid.unsigned_abs()),
            ended: false,
        }
    }

    #[test]
    fn stat_lines_are_read_whatever_the_name() {
        let rest = "S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        for name in ["sh", "a) Z 1 1 1", "(", "two words", ""] {
            let line = format!("42 ({name}) {rest}");
            let wanted = Process {
                pid: 42,
                parent: 7,
                session: 9,
                start: 12345,
                ended: false,
            };
            assert_eq!(parse_stat(line.as_bytes()), Some(wanted), "{name}");
        }
        assert_eq!(parse_stat(b"42 (sh) S 7"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn a_mark_is_a_whole_setting() {
        for (environment, wanted) in [
            (&b"A=1\0M=x\0B=2\0"[..], true),
            (b"M=x\0", true),
            (b"A=1\0M=x", true),
            (b"M=xy\0", false),
            (b"NM=x\0", false),
            (b"A=M=x\0", false),
            (b"", false),
        ] {
            assert_eq!(holds(environment, "M=x"), wanted, "{environment:?}");
        }
    }

    #[test]
    fn a_tree_is_found_by_parent_session_and_mark() {
        let mut tree = Tree {
            mark: String::new(),
            members: HashMap::from([(100, 100)]),
            sessions: HashSet::from([100]),
            since: None,
        };
        let processes = [
            process(1, 0, 0),
            process(50, 1, 50),
            process(100, 1, 100),
            // A grandchild listed before its parent, which made a session of its own.
            process(103, 102, 102),
            process(102, 101, 102),
            process(101, 100, 100),
            // Orphans: one in the command's session, one marked, and a child of the latter.
            process(104, 1, 100),
            process(105, 1, 105),
            process(106, 105, 105),
            process(200, 50, 50),
        ];
        tree.take_in(&processes, &|pid| pid == 105);
        let mut members: Vec<i32> = tree.members.keys().copied().collect();
        members.sort_unstable();
        assert_eq!(members, [100, 101, 102, 103, 104, 105, 106]);
    }

    #[test]
    fn a_run_takes_the_shell_and_what_it_started_itself() {
        let mut tree = Tree {
            mark: String::new(),
            members: HashMap::from([(100, 100)]),
            sessions: HashSet::from([100]),
            since: Some(150),
        };
        let processes = [
            process(1, 0, 0),
            process(100, 1, 100),
            // A server of an earlier run, and what it has started meanwhile.
            process(120, 100, 100),
            process(170, 120, 100),
            process(171, 170, 171),
            process(160, 100, 100),
            process(161, 1, 100),
            process(162, 1, 162),
        ];
        tree.take_in(&processes, &|pid| [120, 162, 171].contains(&pid));
        let mut members: Vec<i32> = tree.members.keys().copied().collect();
        members.sort_unstable();
        assert_eq!(members, [100, 160, 161, 162]);
    }
}
