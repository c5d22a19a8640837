//! `PUT /x/files`: one file as the body of a request, or of several.

use std::path::PathBuf;
use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::file::{Mode, Permission};
use barchan_wire::execd::transfer::{Stored, UploadState};
use barchan_wire::header::UPLOAD_OFFSET;
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use rustix::fs::Timespec;

use super::answer::{Answer, fault, json};
use super::body;
use super::files::Files;
use super::own::more_to_come;
use super::query::Query;
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::files::identity::Identity;
use crate::files::info::{Teller, look};
use crate::files::permission::Rights;
use crate::files::resume::Unfinished;
use crate::files::spelling::Spelling;
use crate::files::stage::Staged;
use crate::files::work::{Begun, Weight, begin, run};
use crate::limits::BLOCK_BYTES;
use crate::small_file;

/// What the query asks for.
struct Order {
    path: PathBuf,
    who: Option<Identity>,
    spelling: Spelling,
    offset: u64,
    total: Option<u64>,
    permission: Permission,
    modified: Option<Timespec>,
    with_digest: bool,
    expected: Option<String>,
}

impl Order {
    fn read(files: &Files<'_>, path: PathBuf, query: &Query) -> Result<Self, Fault> {
        let text = |name| {
            query
                .get(name)
                .map(|it| String::from_utf8_lossy(it).into_owned())
        };
        let bad = |message: &str| Fault::new(Kind::BadRequest, message);
        let mode = query
            .number("mode")?
            .map(|mode| u32::try_from(mode).unwrap_or(u32::MAX));
        let mode = mode.map(Mode::try_from).transpose();
        let modified = text("modified")
            .map(|it| it.parse::<Timestamp>())
            .transpose();
        let modified = modified
            .map_err(|_| bad("`modified` is a moment such as 2030-01-02T03:04:05.678Z"))?
            .map(|it| Timespec {
                tv_sec: it.as_second(),
                tv_nsec: it.subsec_nanosecond().into(),
            });
        let digest = text("sha256").filter(|it| it != "false");
        let expected = digest.clone().filter(|it| it != "true");
        let is_digest = |it: &String| it.len() == 64 && it.bytes().all(|it| it.is_ascii_hexdigit());
        if expected.as_ref().is_some_and(|it| !is_digest(it)) {
            return Err(bad("`sha256` is `true` or 64 hexadecimal digits"));
        }
        let order = Self {
            path,
            who: files.who,
            spelling: files.spelling,
            offset: query.number("offset")?.unwrap_or(0),
            total: query.number("total")?,
            permission: Permission {
                mode: mode.map_err(|error| bad(&error.to_string()))?,
                owner: text("owner"),
                group: text("group"),
            },
            modified,
            with_digest: digest.is_some(),
            expected,
        };
        if order.offset > 0 && order.total.is_none() {
            return Err(bad(
                "an upload that goes on needs `total`, the bytes of the whole file",
            ));
        }
        Ok(order)
    }
}

/// Answers the request.
///
/// # Errors
/// When it makes no sense, does not go on where the last one ended, or cannot be written.
pub(super) async fn put(
    app: &Rc<App>,
    files: &Files<'_>,
    path: PathBuf,
    query: &Query,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let order = Order::read(files, path, query)?;
    let app = Rc::clone(app);
    // A caller that goes away takes its handler along, but not what has arrived.
    let work = tokio::task::spawn_local(async move {
        let mut body = request.into_body();
        receive(&app, &order, &mut body).await
    });
    let lost = |_| Err(Fault::new(Kind::Failed, "the upload broke off"));
    work.await.unwrap_or_else(lost)
}

async fn receive(app: &App, order: &Order, body: &mut Payload) -> Result<Answer, Fault> {
    let unfinished = match open(app, order).await {
        Ok(Ok(unfinished)) => unfinished,
        Ok(Err(answer)) => return Ok(answer),
        Err(fault) => return Err(fault),
    };
    let mut pump = Pump::new(order.who, unfinished);
    let pumped = pump.all(body).await;
    let left = pump.settle().await;
    let resumable = order.total.is_some();
    let (left, pumped) = match (left, pumped) {
        (Err(fault), _) => {
            app.uploads.put(order.who, &order.path, None);
            return Err(fault);
        }
        (Ok(left), pumped) => (left, pumped),
    };
    let is_whole = left.total().is_none_or(|total| total == left.received());
    if pumped.is_ok() && is_whole {
        app.uploads.put(order.who, &order.path, None);
        return commit(order, left).await;
    }
    let state = state(&left);
    app.uploads
        .put(order.who, &order.path, resumable.then_some(left));
    pumped.map(|()| more_to_come(&state))
}

/// The upload to go on with, or the answer that says why not.
async fn open(app: &App, order: &Order) -> Result<Result<Unfinished, Answer>, Fault> {
    let (who, path) = (order.who, order.path.as_path());
    if order.offset == 0 {
        app.uploads.begin(who, path)?;
        let begun = stage(order).await;
        return begun
            .map(Ok)
            .inspect_err(|_| app.uploads.put(who, path, None));
    }
    let Some(left) = app.uploads.take(who, path)? else {
        let message = "no upload of this file waits for its rest; begin with `offset=0`";
        return Err(Fault::new(Kind::NoFile, message));
    };
    if left.received() == order.offset && left.total() == order.total {
        return Ok(Ok(left));
    }
    let UploadState { offset, total } = state(&left);
    app.uploads.put(who, path, Some(left));
    let message = format!("this upload goes on at byte {offset} of {total}");
    let mut answer = fault(&Fault::new(Kind::Conflict, message));
    offset_on(&mut answer, offset);
    Ok(Err(answer))
}

async fn stage(order: &Order) -> Result<Unfinished, Fault> {
    let (path, total) = (order.path.clone(), order.total);
    let (permission, with_digest) = (order.permission.clone(), order.with_digest);
    let work = move || {
        let rights = Rights::new(&permission, &small_file::users());
        let staged = Staged::new(&path, rights)?;
        Ok(Unfinished::new(staged, total, with_digest))
    };
    run(order.who, Weight::Light, work).await
}

async fn commit(order: &Order, left: Unfinished) -> Result<Answer, Fault> {
    let (expected, modified) = (order.expected.clone(), order.modified);
    let (path, spelling) = (order.path.clone(), order.spelling);
    let work = move || {
        let sha256 = left.commit(expected.as_deref(), |staged| {
            if let Some(modified) = modified {
                staged.set_modified(modified);
            }
        })?;
        let info = Teller::new(spelling).describe(&path, &look(&path)?);
        Ok(Stored { info, sha256 })
    };
    Ok(json(&run(order.who, Weight::Light, work).await?))
}

/// How far an upload is.
pub(super) fn state(left: &Unfinished) -> UploadState {
    UploadState {
        offset: left.received(),
        total: left.total().unwrap_or(left.received()),
    }
}

/// Tells where an upload goes on.
pub(super) fn offset_on(answer: &mut Answer, offset: u64) {
    answer.headers_mut().insert(UPLOAD_OFFSET, offset.into());
}

/// Writes one block on a thread while the next one arrives.
struct Pump {
    who: Option<Identity>,
    at_hand: Option<Unfinished>,
    begun: Option<Begun<Unfinished>>,
    batch: Vec<Bytes>,
    batch_bytes: usize,
}

impl Pump {
    fn new(who: Option<Identity>, unfinished: Unfinished) -> Self {
        Self {
            who,
            at_hand: Some(unfinished),
            begun: None,
            batch: Vec::new(),
            batch_bytes: 0,
        }
    }

    /// The whole body, or what comes of it until it breaks off.
    async fn all(&mut self, body: &mut Payload) -> Result<(), Fault> {
        while let Some(bytes) = body::next(body).await? {
            self.batch_bytes += bytes.len();
            self.batch.push(bytes);
            if self.batch_bytes >= BLOCK_BYTES || self.batch.len() >= 1024 {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Fault> {
        let mut unfinished = self.last().await?;
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        self.begun = Some(begin(self.who, move || {
            batch.iter().try_for_each(|bytes| unfinished.write(bytes))?;
            Ok(unfinished)
        }));
        Ok(())
    }

    async fn last(&mut self) -> Result<Unfinished, Fault> {
        match self.begun.take() {
            Some(begun) => begun.end().await,
            None => self.at_hand.take().ok_or_else(broken_off),
        }
    }

    /// What has arrived, all of it written.
    async fn settle(mut self) -> Result<Unfinished, Fault> {
        if !self.batch.is_empty() {
            self.flush().await?;
        }
        self.last().await
    }
}

fn broken_off() -> Fault {
    Fault::new(Kind::Failed, "the upload broke off")
}
