//! The calls of the lifecycle API, one at a time.

use std::time::Duration;

use anyhow::Result;

use super::Measured;
use crate::api::{self, Order};
use crate::args::Options;
use crate::http::Connection;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::ticker;

/// Sandboxes that a list shows.
const LISTED: usize = 100;
/// Sandboxes that stand ready in the pool.
const POOLED: usize = 8;
/// Time that the pool has to fill up again between two creates.
const REFILL: Duration = Duration::from_millis(100);

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let mut samples = bare(options, &mut connection);
    samples.extend(pooled(options, &mut connection)?);
    samples.push(listed(options, &mut connection)?);
    Ok(Measured {
        title: "The lifecycle, one call at a time",
        samples,
        notes: Vec::new(),
    })
}

/// Creates until the daemon answers, and deletes.
fn bare(options: &Options, connection: &mut Connection) -> Vec<Samples> {
    let mut answering = Samples::new("create_answering", "create until the daemon answers", "ms")
        .goal(Statistic::P50, Bound::AtMost, 5.0)
        .goal(Statistic::P99, Bound::AtMost, 20.0);
    let mut gone = Samples::new("delete", "delete", "ms").goal(Statistic::P50, Bound::AtMost, 3.0);
    let order = api::order(IMAGE);
    for round in 0..options.warm_up + options.rounds {
        let start = ticker::now();
        let next = start + Duration::from_millis(options.gap_ms);
        let made = api::create(connection, &order).and_then(|id| {
            api::ping(connection, &id)?;
            Ok((id, ticker::ms_since(start)))
        });
        let deleted = made.as_ref().ok().map(|(id, _)| {
            let start = ticker::now();
            api::delete(connection, id).map(|()| ticker::ms_since(start))
        });
        if round >= options.warm_up {
            answering.add(made.map(|(_, ms)| ms).map_err(|error| format!("{error:#}")));
            if let Some(deleted) = deleted {
                gone.add(deleted.map_err(|error| format!("{error:#}")));
            }
        }
        ticker::sleep_until(next);
    }
    vec![answering, gone]
}

/// Creates from a pool that has had time to fill up.
fn pooled(options: &Options, connection: &mut Connection) -> Result<[Samples; 2]> {
    let mut created = Samples::new("pool_create", "create from a pool", "ms");
    created = created.goal(Statistic::P50, Bound::AtMost, 2.0);
    let mut used = Samples::new("pool_first_output", "from a pool to first output", "ms");
    used = used.goal(Statistic::P50, Bound::AtMost, 3.0);
    api::create_pool(connection, IMAGE, POOLED)?;
    let order = api::pool_order();
    for round in 0..options.warm_up + options.rounds {
        let next = ticker::now() + REFILL;
        let (create, whole) = api::create_and_use(connection, &order);
        if round >= options.warm_up {
            created.add(create);
            used.add(whole);
        }
        ticker::sleep_until(next);
    }
    api::delete_pool(connection)?;
    Ok([created, used])
}

/// Lists of a hundred sandboxes.
fn listed(options: &Options, connection: &mut Connection) -> Result<Samples> {
    let mut list = Samples::new("list_100", "a list of 100 sandboxes", "ms");
    list = list.goal(Statistic::P50, Bound::AtMost, 2.0);
    let order = api::order(IMAGE);
    let ids: Result<Vec<_>> = (0..LISTED)
        .map(|_| api::create(connection, &order))
        .collect();
    let ids = ids?;
    for round in 0..options.warm_up + options.rounds {
        let start = ticker::now();
        let found = api::list(connection, LISTED).map(|()| ticker::ms_since(start));
        if round >= options.warm_up {
            list.add(found.map_err(|error| format!("{error:#}")));
        }
    }
    for id in &ids {
        api::command(connection, id, Order::Sh)?;
        api::delete(connection, id)?;
    }
    Ok(list)
}
