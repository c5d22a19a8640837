//! Runs a cell for a caller who waits: what the kernel tells becomes events.

use std::rc::Rc;
use std::time::Duration;

use barchan_wire::execd::event::{EventError, EventKind};
use bytes::Bytes;
use tokio::pin;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::kernel::Outcome;
use super::outbox::Outbox;
use super::{Claim, Context};
use crate::app::App;
use crate::limits::PING_MS;

/// `ename` when the kernel, not the code, failed.
const KERNEL_DIED: &str = "KernelDied";
/// `ename` of what never began, as Python has it.
const INTERRUPTED: &str = "KeyboardInterrupt";
/// `ename` of a refusal, which clients know as the code of an error.
const REFUSED: &str = "RUNTIME_ERROR";

/// Starts a cell; the pieces of its event stream.
pub(crate) fn start(app: &Rc<App>, claim: Claim, code: String) -> mpsc::Receiver<Bytes> {
    let (out, pieces) = mpsc::channel(2);
    let outbox = Outbox::default();
    outbox.text(EventKind::Init, &claim.0.id);
    // In the channel before the answer is begun, so that one write carries head and first event.
    let _ = out.try_send(outbox.take());
    tokio::task::spawn_local(follow(Rc::clone(app), claim, code, outbox, out));
    pieces
}

/// The whole stream of a cell that is refused because another one runs: clients expect the refusal
/// in the stream, after the context's id.
pub(crate) fn refuse(context: &Context) -> Bytes {
    let outbox = Outbox::default();
    outbox.text(EventKind::Init, &context.id);
    let evalue = "session is busy: another cell runs in this context; wait for its end, interrupt \
                  it, or use another context";
    outbox.end(Some(error(REFUSED, evalue.to_owned())), 0);
    outbox.take()
}

/// Sends what the cell tells, as fast as the caller takes it, until the cell has ended. A caller
/// who goes away takes the cell along, not its context.
async fn follow(
    app: Rc<App>,
    claim: Claim,
    code: String,
    outbox: Outbox,
    out: mpsc::Sender<Bytes>,
) {
    let context = Rc::clone(&claim.0);
    let cell = run(&app, &context, &code, &outbox);
    pin!(cell);
    let mut gone = false;
    let ping = Duration::from_millis(PING_MS);
    let mut pings = interval_at(Instant::now() + ping, ping);
    loop {
        tokio::select! {
            biased;
            () = out.closed(), if !gone => {
                gone = true;
                outbox.close();
                let (app, context) = (Rc::clone(&app), Rc::clone(&context));
                tokio::task::spawn_local(async move { context.interrupt(&app).await });
            }
            permit = out.reserve(), if !gone && outbox.waits() => {
                if let Ok(permit) = permit {
                    permit.send(outbox.take());
                }
            }
            () = &mut cell => break,
            () = outbox.changed.notified() => {}
            _ = pings.tick() => if !outbox.waits() { outbox.text(EventKind::Ping, "pong") },
        }
    }
    // Free for the next cell before the caller can know that this one has ended.
    drop(claim);
    let _ = out.send(outbox.take()).await;
}

/// Runs the cell, up to and including the event that ends it.
async fn run(app: &Rc<App>, context: &Context, code: &str, outbox: &Outbox) {
    let started = Instant::now();
    let failure = match context.kernel(app) {
        Err(fault) => Some(error(KERNEL_DIED, fault.message)),
        Ok((kernel, lost)) => {
            if let Some(why) = lost {
                outbox.note(&format!(
                    "the kernel had ended ({why}); this is a new one, without earlier variables"
                ));
            }
            let stopped = || context.interrupted.get();
            match kernel
                .execute(app, code, &stopped, &mut |told| outbox.tell(told))
                .await
            {
                Outcome::Done(failure) => failure,
                Outcome::Stopped => {
                    Some(error(INTERRUPTED, "interrupted before it began".to_owned()))
                }
                Outcome::Died(why) => Some(error(
                    KERNEL_DIED,
                    format!("{why}. The next cell starts a new kernel, without its variables"),
                )),
            }
        }
    };
    outbox.end(failure, started.elapsed().as_millis() as u64);
}

fn error(ename: &str, evalue: String) -> EventError {
    EventError {
        ename: ename.to_owned(),
        traceback: vec![evalue.clone()],
        evalue,
    }
}
