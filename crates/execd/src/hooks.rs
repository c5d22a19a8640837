//! Programs that the sandbox's creator wants run: one before the entrypoint, others at intervals.

use std::rc::Rc;
use std::time::Duration;

use barchan_jail::guest::Hook;
use barchan_wire::lifecycle::Schedule;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use crate::app::App;
use crate::clock;
use crate::command::audience::Leave;
use crate::command::order::{Order, What};
use crate::command::{Cause, Command, start};
use crate::environment::Variables;

/// How much of a hook's output is shown, in bytes: its end.
const SHOWN_BYTES_MAX: u64 = 16 * 1024;
/// Longest sleep in one piece: a clock that is set, and a sandbox that was frozen, are seen then.
const NAP_MAX: Duration = Duration::from_secs(20);

/// How a hook ended.
struct Outcome {
    /// 0 when all is well.
    code: i32,
    /// What went wrong, if anything did.
    failure: Option<String>,
    /// The end of what it printed.
    output: Vec<u8>,
}

impl Outcome {
    /// What the log is to say of it.
    fn told(&self, hook: &Hook) -> Vec<u8> {
        let mut told = self.output.clone();
        if let Some(failure) = &self.failure {
            if !told.is_empty() && !told.ends_with(b"\n") {
                told.push(b'\n');
            }
            told.extend(format!("barchan: the hook {:?} failed: {failure}\n", hook.name).bytes());
        }
        told
    }
}

/// Runs the hook before the entrypoint, and has the log say what it printed. An error is the exit
/// code of the sandbox.
pub(crate) async fn before(app: &Rc<App>, hook: &Hook, say: impl FnOnce(&[u8])) -> Result<(), i32> {
    let outcome = run(app, hook).await;
    say(&outcome.told(hook));
    match outcome.code {
        0 => Ok(()),
        code => Err(code),
    }
}

/// Runs a hook whenever it is due, for ever. One that is still at work when it is due again, or is
/// due while the sandbox is frozen, is not run twice for that.
pub(crate) async fn again_and_again(app: Rc<App>, hook: Hook, log: Sender<Vec<u8>>) {
    let Ok(schedule) = Schedule::parse(&hook.schedule) else {
        let line = format!("barchan: the hook {:?} has no schedule\n", hook.name);
        let _ = log.send(line.into()).await;
        return;
    };
    loop {
        let Some(due) = schedule.next_after(clock::now()) else {
            return;
        };
        loop {
            let left = due.duration_since(clock::now());
            match Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
                Some(left) => sleep(left.min(NAP_MAX)).await,
                None => break,
            }
        }
        let told = run(&app, &hook).await.told(&hook);
        if !told.is_empty() && log.send(told).await.is_err() {
            return;
        }
    }
}

/// Runs a hook to its end. What it leaves behind in the background runs on: a hook may start a
/// server.
async fn run(app: &Rc<App>, hook: &Hook) -> Outcome {
    let order = Order {
        what: What::Program(hook.argv.clone()),
        cwd: None,
        timeout: Some(Duration::from_secs(hook.timeout_s)),
        person: None,
        variables: Variables::new(),
        id: None,
        stdin: false,
        merges: true,
        leave: Leave::Stay,
        is_hook: true,
    };
    let command = match start::start(app, &order) {
        Ok(command) => command,
        Err(fault) => {
            return Outcome {
                code: 126,
                failure: Some(fault.message),
                output: Vec::new(),
            };
        }
    };
    let given_up = GivenUp(Rc::clone(app), Rc::clone(&command));
    command.completed().await;
    drop(given_up);
    let end = command.end();
    let outcome = Outcome {
        code: end.as_ref().map_or(255, |end| end.code),
        failure: end.and_then(|end| end.failure),
        output: tail(&command),
    };
    app.commands.remove(&command);
    outcome
}

/// Kills a command, unless it has ended, when nobody waits for its end any more.
struct GivenUp(Rc<App>, Rc<Command>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.1.kill(&self.0.reaper, Cause::Interrupted);
    }
}

fn tail(command: &Command) -> Vec<u8> {
    let record = command.record.borrow();
    let from = record
        .end()
        .saturating_sub(SHOWN_BYTES_MAX)
        .max(record.start());
    let mut output = vec![0; usize::try_from(record.end() - from).unwrap_or_default()];
    let read = record.bytes(from, &mut output);
    output.truncate(read);
    output
}
