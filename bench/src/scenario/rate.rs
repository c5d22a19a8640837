//! Sandboxes made, used once and deleted, by two clients at once.

use std::time::Duration;

use anyhow::Result;

use super::Measured;
use crate::args::Options;
use crate::http::Connection;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, ticker};

const CLIENTS: usize = 2;
/// How long the first rounds run that do not count.
const WARM_UP: Duration = Duration::from_secs(1);

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let title = "sandboxes made, used and deleted, two clients";
    let mut rate = Samples::new("rate", title, "1/s").goal(Statistic::P50, Bound::AtLeast, 150.0);
    let mut each = Samples::new("rate_create", "create to first output, two clients", "ms");
    run(options, &server, use_once, [&mut rate, &mut each])?;
    let title = "sandboxes made and deleted, two clients";
    let mut bare = Samples::new("rate_bare", title, "1/s");
    bare = bare.goal(Statistic::P50, Bound::AtLeast, 200.0);
    let mut bare_each = Samples::new("rate_bare_each", "create and delete, two clients", "ms");
    run(options, &server, make, [&mut bare, &mut bare_each])?;
    Ok(Measured {
        title: "As many as possible",
        samples: vec![rate, each, bare, bare_each],
        notes: vec!["values of the rate are those of single seconds".to_owned()],
    })
}

/// What a client does again and again, and how long it took.
type Work = fn(&mut Connection, &str) -> Result<f64, String>;

fn use_once(connection: &mut Connection, order: &str) -> Result<f64, String> {
    api::create_and_use(connection, order).1
}

fn make(connection: &mut Connection, order: &str) -> Result<f64, String> {
    let start = ticker::now();
    let made = api::create(connection, order).and_then(|id| api::delete(connection, &id));
    let made = made.map(|()| ticker::ms_since(start));
    made.map_err(|error| format!("{error:#}"))
}

fn run(
    options: &Options,
    server: &Server,
    work: Work,
    [rate, each]: [&mut Samples; 2],
) -> Result<()> {
    let start = ticker::now() + WARM_UP;
    let end = start + Duration::from_secs(options.rate_s);
    let connections: Result<Vec<_>> = (0..CLIENTS).map(|_| server.tcp()).collect();
    let done = std::thread::scope(|scope| {
        let clients: Vec<_> = connections?
            .into_iter()
            .map(|connection| scope.spawn(move || client(connection, work, end)))
            .collect();
        let joined = clients
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_default());
        Ok::<_, anyhow::Error>(joined.collect::<Vec<_>>())
    })?;
    let counted: Vec<_> = done
        .into_iter()
        .filter(|(at, _)| *at >= start && *at < end)
        .collect();
    for second in 0..options.rate_s {
        let from = start + Duration::from_secs(second);
        let within = |at: Duration| at >= from && at < from + Duration::from_secs(1);
        let made = counted
            .iter()
            .filter(|(at, outcome)| within(*at) && outcome.is_ok());
        rate.add(Ok(made.count() as f64));
    }
    counted
        .into_iter()
        .for_each(|(_, outcome)| each.add(outcome));
    Ok(())
}

/// Goes on until the end; when each piece of work was done, and how long it took.
fn client(
    mut connection: Connection,
    work: Work,
    end: Duration,
) -> Vec<(Duration, Result<f64, String>)> {
    let order = api::order(IMAGE);
    let mut done = Vec::new();
    while ticker::now() < end {
        let outcome = work(&mut connection, &order);
        done.push((ticker::now(), outcome));
    }
    done
}
