//! The routes of metrics.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::answer::{Answer, Body, json, typed};
use crate::app::App;

/// Between two lines of the watch.
const WATCH: Duration = Duration::from_secs(2);

/// `GET /metrics`
pub(crate) fn look(app: &App) -> Answer {
    json(&app.metrics.look())
}

/// `GET /metrics/watch`: a line of JSON every two seconds, until the caller goes.
pub(crate) fn watch(app: &Rc<App>) -> Answer {
    let (out, pieces) = mpsc::channel(1);
    let app = Rc::clone(app);
    tokio::task::spawn_local(async move {
        loop {
            let Ok(mut line) = serde_json::to_vec(&app.metrics.look()) else {
                return;
            };
            line.push(b'\n');
            if out.send(line.into()).await.is_err() {
                return;
            }
            tokio::select! {
                () = out.closed() => return,
                () = sleep(WATCH) => {}
            }
        }
    });
    typed("text/event-stream", Body::Stream(pieces))
}
