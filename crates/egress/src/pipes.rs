//! Pipes through which the kernel moves bytes from one connection to another. They are borrowed
//! only while bytes move, so idle connections need none.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::limits::{PIPE_BYTES, PIPES_KEPT_MAX, PIPES_MAX, SANDBOX_PIPES_MAX};

/// The pipes that are not in use, and how many there are.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    idle: RefCell<Vec<Ends>>,
    made: Cell<usize>,
}

#[derive(Debug)]
struct Ends {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe that is borrowed. It is closed instead of given back while anything is in it.
#[derive(Debug)]
pub(crate) struct Pipe<'a> {
    ends: Option<Ends>,
    /// Bytes in it.
    pub(crate) held: usize,
    pipes: &'a Pipes,
    used: &'a Cell<usize>,
}

impl Pipes {
    /// A pipe; `None` while this sandbox has too many, or all have.
    pub(crate) fn borrow<'a>(&'a self, used: &'a Cell<usize>) -> Option<Pipe<'a>> {
        if used.get() >= SANDBOX_PIPES_MAX {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let ends = match idle {
            Some(ends) => ends,
            None if self.made.get() >= PIPES_MAX => return None,
            None => {
                let flags = PipeFlags::NONBLOCK | PipeFlags::CLOEXEC;
                let (read, write) = pipe_with(flags).ok()?;
                // A smaller one works as well, only slower.
                let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
                self.made.set(self.made.get() + 1);
                Ends { read, write }
            }
        };
        used.set(used.get() + 1);
        Some(Pipe {
            ends: Some(ends),
            held: 0,
            pipes: self,
            used,
        })
    }
}

impl Pipe<'_> {
    /// Where bytes come out.
    pub(crate) fn read(&self) -> Option<&OwnedFd> {
        self.ends.as_ref().map(|ends| &ends.read)
    }

    /// Where bytes go in.
    pub(crate) fn write(&self) -> Option<&OwnedFd> {
        self.ends.as_ref().map(|ends| &ends.write)
    }
}

impl Drop for Pipe<'_> {
    fn drop(&mut self) {
        self.used.set(self.used.get().saturating_sub(1));
        let Some(ends) = self.ends.take() else { return };
        let mut idle = self.pipes.idle.borrow_mut();
        if self.held == 0 && idle.len() < PIPES_KEPT_MAX {
            idle.push(ends);
        } else {
            self.pipes.made.set(self.pipes.made.get().saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sandbox_takes_its_share_and_no_more() {
        let pipes = Pipes::default();
        let used = Cell::new(0);
        let mut taken: Vec<_> = (0..SANDBOX_PIPES_MAX)
            .map(|_| pipes.borrow(&used).unwrap())
            .collect();
        assert!(pipes.borrow(&used).is_none());
        assert!(pipes.borrow(&Cell::new(0)).is_some());
        taken.pop();
        assert!(pipes.borrow(&used).is_some());
        drop(taken);
        assert_eq!(used.get(), 0);
    }

    #[test]
    fn what_has_bytes_in_it_is_not_used_again() {
        let pipes = Pipes::default();
        let used = Cell::new(0);
        let mut pipe = pipes.borrow(&used).unwrap();
        pipe.held = 1;
        drop(pipe);
        assert_eq!((pipes.made.get(), pipes.idle.borrow().len()), (0, 0));
        drop(pipes.borrow(&used).unwrap());
        assert_eq!((pipes.made.get(), pipes.idle.borrow().len()), (1, 1));
    }
}
