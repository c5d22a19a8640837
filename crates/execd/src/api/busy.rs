//! Whether something that a caller asked for is still at work.

use http::StatusCode;

use super::answer::{Answer, done};
use crate::app::App;

/// `GET /x/busy`: 200 when a command, a run of a session or a cell is at work, 204 when nothing is.
/// What programs leave behind in the background does not count: nobody waits for it.
pub(super) async fn look(app: &App) -> Answer {
    let is_busy = app.commands.any_at_work()
        || app.sessions.any_running()
        || app.contexts.any_busy()
        || app.isolated.any_busy().await;
    let mut answer = done();
    if !is_busy {
        *answer.status_mut() = StatusCode::NO_CONTENT;
    }
    answer
}
