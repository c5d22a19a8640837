//! Every change of every sandbox, as it is kept: an event stream for browsers and programs.

mod filter;

use std::time::Duration;

use barchan_daemon::clock::Clock;
use barchan_daemon::payload::Payload;
use barchan_daemon::shutdown::Shutdown;
use barchan_wire::header::LAST_EVENT_ID;
use barchan_wire::lifecycle::Time;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::errors::Refusal;
use super::identity::Identity;
use super::reply::{self, Body};
use super::{Api, views};
use crate::access::Access;
use crate::lifecycle::{Change, Watch};
use filter::Filter;

/// Frames on their way to a watcher that is slower than the changes.
const FRAMES_MAX: usize = 64;
/// Between two signs of life on a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What a watcher is told when it missed changes: it has to look at all sandboxes anew.
const GAP: &[u8] = b"event: gap\ndata: {}\n\n";

impl Api {
    /// `GET /x/events`. With `Last-Event-ID`, from after that event on.
    pub(super) fn watch(
        &self,
        request: &Request<Payload>,
        identity: Identity,
    ) -> Result<Response<Body>, Refusal> {
        let filter = Filter::read(request.uri().query())?;
        let last = request.headers().get(LAST_EVENT_ID);
        let last = last.map(|last| self.number(last.as_bytes()));
        let watch = match last {
            None => self.lifecycle.watch_changes(None),
            Some(Some(number)) => self.lifecycle.watch_changes(Some(number)),
            // An event of an earlier run of the server: what followed it is not known here.
            Some(None) => Watch {
                has_gap: true,
                ..self.lifecycle.watch_changes(Some(0))
            },
        };
        let (out, frames) = mpsc::channel(FRAMES_MAX);
        let teller = Teller {
            run: self.run_id(),
            filter,
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
            access: self.tenancy.access.clone(),
            identity,
            out,
        };
        self.tasks.spawn(teller.tell(watch));
        let mut response = reply::empty(200);
        *response.body_mut() = Body::Told(frames);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    /// The number of an event of this run of the server; `None` when it is no such.
    fn number(&self, id: &[u8]) -> Option<u64> {
        let (run, number) = std::str::from_utf8(id).ok()?.rsplit_once('-')?;
        number.parse().ok().filter(|_| run == self.run_id())
    }

    /// Tells this run of the server from others.
    fn run_id(&self) -> String {
        format!("{:x}", self.started.wall.as_microsecond())
    }
}

struct Teller {
    run: String,
    filter: Filter,
    clock: Clock,
    shutdown: Shutdown,
    access: Access,
    identity: Identity,
    out: mpsc::Sender<Bytes>,
}

impl Teller {
    /// Until the watcher goes, its key is no longer good, or the server stops.
    async fn tell(self, watch: Watch) {
        let Watch {
            missed,
            has_gap,
            mut coming,
            scope,
        } = watch;
        // A comment, so that a watcher knows at once that it is heard.
        let mut first = vec![Bytes::from_static(b": watching\n\n")];
        first.extend(has_gap.then(|| Bytes::from_static(GAP)));
        first.extend(missed.iter().filter_map(|change| self.frame(change)));
        for frame in first {
            if self.out.send(frame).await.is_err() {
                return;
            }
        }
        let mut changes = self.access.changes();
        let mut heartbeat = self.clock.now().uptime + HEARTBEAT;
        while self
            .identity
            .is_good(&self.access, Time::new(self.clock.now().wall))
        {
            let frame = tokio::select! {
                change = coming.recv() => match change {
                    Ok(change) if scope.sees(&change.record) => self.frame(&change),
                    Ok(_) => None,
                    Err(RecvError::Lagged(_)) => Some(Bytes::from_static(GAP)),
                    Err(RecvError::Closed) => return,
                },
                () = self.clock.sleep_until(heartbeat) => {
                    Some(Bytes::from_static(b": still here\n\n"))
                }
                _ = changes.changed() => None,
                () = self.out.closed() => return,
                () = self.shutdown.begun() => return,
            };
            // Whoever is told nothing of what happens still hears that it is heard.
            let Some(frame) = frame else { continue };
            if self.out.send(frame).await.is_err() {
                return;
            }
            heartbeat = self.clock.now().uptime + HEARTBEAT;
        }
    }

    /// What is told of a change; nothing if the watcher does not want to know.
    fn frame(&self, change: &Change) -> Option<Bytes> {
        if !self.filter.shows(change) {
            return None;
        }
        let report = views::change(change);
        // Our own types always are JSON.
        let data = serde_json::to_string(&report).ok()?;
        let (run, number) = (&self.run, change.number);
        let event = &report.happening.event;
        let frame = format!("id: {run}-{number}\nevent: {event}\ndata: {data}\n\n");
        Some(frame.into())
    }
}
