//! `barchan audit`: who changed what on this host's server, and who was refused.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result};
use barchan_daemon::clock::Clock;
use barchan_server::audit::{self, Line, Reader};
use barchan_server::config::state_dir;
use barchan_wire::lifecycle::Time;

use crate::args::{Audit, Global};
use crate::config::server_settings;
use crate::output::Output;

/// How often it is looked whether something new was noted.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Reads the files of the state directory itself: it works whether the server runs or not.
pub(super) async fn run(global: &Global, flags: &Audit, output: &Output) -> Result<()> {
    let settings = server_settings(global, None)?.settings;
    let folder = audit::folder(&state_dir(&settings));
    let shown = folder.display();
    let opened = Reader::open(&folder);
    let mut reader = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            output.note(&format!("nothing is noted: there is no {shown}"));
            return Ok(());
        }
        opened => opened.with_context(|| format!("cannot read {shown}"))?,
    };
    let clock = Clock::system();
    let since = flags.since.map(|span| first_moment(&clock, span));
    loop {
        let next = reader.next_line();
        match next.with_context(|| format!("cannot read on in {shown}"))? {
            Some(line) if is_asked_for(&line, flags, since) => print(&line, output)?,
            Some(_) => {}
            None if flags.follow => clock.sleep_until(clock.now().uptime + LOOK_INTERVAL).await,
            None => return Ok(()),
        }
    }
}

fn first_moment(clock: &Clock, span: Duration) -> i64 {
    let now = Time::new(clock.now().wall).as_micros();
    let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    now.saturating_sub(span)
}

fn is_asked_for(line: &Line, flags: &Audit, since_us: Option<i64>) -> bool {
    let is = |asked: &Option<String>, found: &Option<String>| {
        asked.is_none() || asked.as_deref() == found.as_deref()
    };
    let begins = |asked: &str| {
        let found = line.sandbox.as_deref();
        found.is_some_and(|found| found.starts_with(asked))
    };
    since_us.is_none_or(|since| line.at.as_micros() >= since)
        && flags.sandbox.as_deref().is_none_or(begins)
        && is(&flags.tenant, &line.actor.tenant)
        && is(&flags.key, &line.actor.key)
}

/// One line of JSON as it was noted, or the same for people.
fn print(line: &Line, output: &Output) -> Result<()> {
    if output.is_json() {
        return Ok(output.json_line(line)?);
    }
    if let Some(lost) = line.lost {
        output.line(output.yellow(&format!("{lost} lines could not be written here")))?;
    }
    let actor = &line.actor;
    let mut who = actor.kind.escape_debug().to_string();
    for part in [&actor.key, &actor.label, &actor.tenant]
        .into_iter()
        .flatten()
    {
        who = format!("{who} {}", part.escape_debug());
    }
    if let Some(uid) = actor.uid {
        who = format!("{who} uid {uid}");
    }
    let what = line.sandbox.as_ref().or(line.target.as_ref());
    let what = what.map(|what| format!(" {}", what.escape_debug()));
    let status = line.status.map(|status| status.to_string());
    let status = status.unwrap_or_else(|| "went away".to_owned());
    let code = line.code.as_ref();
    let code = code.map(|code| format!(" {}", code.escape_debug()));
    Ok(output.line(&format!(
        "{}  {}{}  {status}{}  {who} from {}",
        line.at,
        line.operation.escape_debug(),
        what.unwrap_or_default(),
        code.unwrap_or_default(),
        line.peer.escape_debug(),
    ))?)
}
