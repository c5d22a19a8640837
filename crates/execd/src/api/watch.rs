//! `GET /x/watch`: changes of files as server-sent events. While the caller takes none, nothing is
//! read either, and the kernel says when it had to drop some.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use barchan_wire::execd::watch::{Change, ChangeKind};
use bytes::Bytes;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::answer::{Answer, Body, typed};
use super::files::Files;
use super::query::Query;
use crate::fault::{Fault, Kind};
use crate::files::identity::Identity;
use crate::files::watch::Watch;
use crate::files::work::{Weight, run};
use crate::limits::{PING_MS, READ_BYTES, WATCHES_MAX};

static PLACES: Semaphore = Semaphore::const_new(WATCHES_MAX);

/// Answers the request.
///
/// # Errors
/// When the path cannot be watched.
pub(super) async fn watch(
    files: &Files<'_>,
    path: PathBuf,
    query: &Query,
) -> Result<Answer, Fault> {
    let place = PLACES.try_acquire().map_err(|_| {
        let message = format!("{WATCHES_MAX} paths are watched; end another watch first");
        Fault::new(Kind::Busy, message)
    })?;
    let (who, spelling) = (files.who, files.spelling);
    let is_recursive = query.flag("recursive");
    let open = move || Watch::open(&path, is_recursive, spelling);
    let watch = run(who, Weight::Heavy, open).await?;
    let (out, pieces) = mpsc::channel(1);
    tokio::task::spawn_local(tell(watch, who, out, place));
    Ok(typed("text/event-stream", Body::Stream(pieces)))
}

/// Tells what happens until the caller goes or the path is gone.
async fn tell(
    mut watch: Watch,
    who: Option<Identity>,
    out: Sender<Bytes>,
    _place: SemaphorePermit<'static>,
) {
    // Not a pipe, but read like one.
    let source = watch.inotify().try_clone();
    let Ok(source) = source.and_then(Receiver::from_owned_fd_unchecked) else {
        return;
    };
    let mut changes = vec![watch.own(ChangeKind::Ready)];
    loop {
        let is_over = changes.iter().any(|it| it.kind == ChangeKind::Gone);
        if !changes.is_empty() && out.send(frames(&changes)).await.is_err() || is_over {
            return;
        }
        changes.clear();
        tokio::select! {
            () = out.closed() => return,
            ready = source.readable() => if ready.is_err() {
                return;
            },
            () = sleep(Duration::from_millis(PING_MS)) => {
                if out.send(Bytes::from_static(b": nothing new\n\n")).await.is_err() {
                    return;
                }
                continue;
            }
        }
        let mut bytes = vec![0; READ_BYTES];
        match source.try_read(&mut bytes) {
            Ok(taken) => bytes.truncate(taken),
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(_) => return,
        }
        let work = move || {
            let changes = watch.changes(&bytes);
            Ok((watch, changes))
        };
        let Ok(done) = run(who, Weight::Heavy, work).await else {
            return;
        };
        (watch, changes) = done;
    }
}

fn frames(changes: &[Change]) -> Bytes {
    let mut text = String::new();
    for change in changes {
        if let Ok(json) = serde_json::to_string(change) {
            text += &format!("data: {json}\n\n");
        }
    }
    text.into()
}
