//! Children: how they end, and the one place that reaps them.

use std::cell::RefCell;
use std::collections::HashMap;

use barchan_jail::child::{self, Status, Usage};
use rustix::process::Pid;
use tokio::signal::unix::Signal as SignalStream;
use tokio::sync::oneshot;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Stands for an end that nobody saw; the reaper sees them all, so it never comes up.
    pub(crate) const LOST: Self = Self::Code(255);

    /// The code a shell would report: 128 + n for signal n.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// In words; `None` for a success.
    pub(crate) fn failure(self) -> Option<String> {
        match self {
            Self::Code(0) => None,
            Self::Code(code) => Some(format!("exit status {code}")),
            Self::Signal(signal) => Some(format!("signal: {}", signal_name(signal))),
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Code(code) => Self::Code(code),
            Status::Signal(signal) => Self::Signal(signal),
        }
    }
}

/// An end, and what was used until then.
pub(crate) type Ended = (Exit, Usage);

fn signal_name(signal: i32) -> String {
    let known = match signal {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        4 => "illegal instruction",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        31 => "bad system call",
        other => return format!("signal {other}"),
    };
    known.to_owned()
}

/// Who waits for which child. As PID 1 this process inherits every orphan of the sandbox, so one
/// loop reaps them all; nothing else may wait, or it would take the exit codes of others.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    waiting: RefCell<HashMap<i32, oneshot::Sender<Ended>>>,
}

impl Reaper {
    /// The end of a child. To be called right after it was started, before anything is awaited.
    pub(crate) fn watch(&self, pid: Pid) -> oneshot::Receiver<Ended> {
        let (told, end) = oneshot::channel();
        self.waiting
            .borrow_mut()
            .insert(pid.as_raw_nonzero().get(), told);
        end
    }

    /// Whether a watched child has not been reaped yet, so that its pid is still its own.
    pub(crate) fn holds(&self, pid: Pid) -> bool {
        self.waiting
            .borrow()
            .contains_key(&pid.as_raw_nonzero().get())
    }

    /// Reaps for ever; `children` announces that there may be something to reap.
    pub(crate) async fn run(&self, mut children: SignalStream) {
        loop {
            self.reap();
            if children.recv().await.is_none() {
                return;
            }
        }
    }

    fn reap(&self) {
        while let Some((pid, status, usage)) = child::reap() {
            let waiting = self.waiting.borrow_mut().remove(&pid);
            if let Some(waiting) = waiting {
                // Whoever waited may have lost interest; the child is reaped all the same.
                let _ = waiting.send((status.into(), usage));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_codes_and_words() {
        for (exit, code, words) in [
            (Exit::Code(0), 0, None),
            (Exit::Code(7), 7, Some("exit status 7")),
            (Exit::Signal(9), 137, Some("signal: killed")),
            (Exit::Signal(15), 143, Some("signal: terminated")),
            (Exit::Signal(64), 192, Some("signal: signal 64")),
        ] {
            assert_eq!((exit.code(), exit.failure().as_deref()), (code, words));
        }
    }
}
