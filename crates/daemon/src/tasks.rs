//! Every task has an owner that waits for it at the end.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A set of tasks. Clones are the same set.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Tasks {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a task. Its result is `None` when the drain's deadline cut it off.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let cut = self.cut.clone();
        self.tracker
            .spawn(async move { cut.run_until_cancelled(task).await })
    }

    /// How many tasks are not yet done.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether every task is done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Waits until every task is done; those that are not by the deadline are cut off. Returns how
    /// many those were.
    pub async fn drain(&self, deadline: Duration) -> usize {
        self.tracker.close();
        if tokio::time::timeout(deadline, self.tracker.wait())
            .await
            .is_ok()
        {
            return 0;
        }
        let late = self.tracker.len();
        self.cut.cancel();
        self.tracker.wait().await;
        late
    }
}

/// Tasks that the HTTP library makes for itself.
impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_waits_for_the_willing_and_cuts_off_the_late() {
        let tasks = Tasks::new();
        let quick = tasks.spawn(async { 7 });
        let stuck = tasks.spawn(std::future::pending::<u8>());
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks.drain(Duration::from_millis(5)).await, 1);
        assert_eq!(quick.await.unwrap(), Some(7));
        assert_eq!(stuck.await.unwrap(), None);
        assert!(tasks.is_empty());
    }
}
