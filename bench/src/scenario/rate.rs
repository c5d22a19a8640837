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
    let start = ticker::now() + WARM_UP;
    let end = start + Duration::from_secs(options.rate_s);
    let connections: Result<Vec<_>> = (0..CLIENTS).map(|_| server.tcp()).collect();
    let done = std::thread::scope(|scope| {
        let clients: Vec<_> = connections?
            .into_iter()
            .map(|connection| scope.spawn(move || client(connection, end)))
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
    Ok(Measured {
        title: "As many as possible",
        samples: vec![rate, each],
        notes: vec!["values of the rate are those of single seconds".to_owned()],
    })
}

/// Goes on until the end; when each sandbox was gone again, and how long it took to its output.
fn client(mut connection: Connection, end: Duration) -> Vec<(Duration, Result<f64, String>)> {
    let order = api::order(IMAGE);
    let mut done = Vec::new();
    while ticker::now() < end {
        let (_, used) = api::create_and_use(&mut connection, &order);
        done.push((ticker::now(), used));
    }
    done
}
