//! How sessions end: when they are deleted, when nobody uses them, and when they are killed.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{End, Session};
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::limits::{IDLE_LOOK_MS, KILL_MS};

/// Deletes a session with everything in it. Returns when nothing of it is left.
///
/// # Errors
/// When there is none of this id.
pub(crate) async fn delete(app: &Rc<App>, id: &str) -> Result<(), Fault> {
    let session = app.isolated.take(id).ok_or_else(|| super::unknown(id))?;
    // A task of its own, so that a caller who leaves does not leave half of it behind.
    let ended = tokio::task::spawn_local(end(Rc::clone(app), session)).await;
    ended.map_err(|error| Fault::new(Kind::Failed, error.to_string()))
}

/// Follows a session until its PID 1 has ended, and deletes it once nobody has used it for long.
pub(super) async fn watch(app: Rc<App>, session: Rc<Session>, mut exit: End) {
    loop {
        tokio::select! {
            _ = &mut exit => break,
            () = idle(&session) => {
                if session.runs.any_running(&session).await {
                    let look = Duration::from_millis(IDLE_LOOK_MS);
                    if timeout(look, &mut exit).await.is_ok() {
                        break;
                    }
                } else if session.in_use.get() == 0 && app.isolated.take(&session.id).is_some() {
                    tokio::task::spawn_local(end(Rc::clone(&app), Rc::clone(&session)));
                }
            }
        }
    }
    session.alive.send_replace(false);
}

/// Until a session has not been used for as long as it may be; for ever if there is no limit or
/// while it is being ended.
async fn idle(session: &Session) {
    let Some(limit) = session.idle.filter(|_| !session.is_ending()) else {
        return std::future::pending().await;
    };
    loop {
        let left = limit.saturating_sub(session.last_used.get().elapsed());
        if session.in_use.get() == 0 && left.is_zero() {
            return;
        }
        sleep(left.max(Duration::from_millis(100))).await;
    }
}

/// Ends a session that nobody can find any more.
async fn end(app: Rc<App>, session: Rc<Session>) {
    session.kill(&app.reaper);
    let mut alive = session.alive.subscribe();
    let ended = alive.wait_for(|alive| !alive);
    let _ = timeout(Duration::from_millis(KILL_MS), ended).await;
    session.part.remove().await;
}
