//! From the request for a sandbox to the output of its first command, one at a time.

use std::time::Duration;

use anyhow::Result;

use super::Measured;
use crate::args::Options;
use crate::http::Connection;
use crate::python::Client;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, ticker};

/// A client by HTTP and what it found.
struct Raw {
    connection: Connection,
    created: Samples,
    used: Samples,
}

/// A client in Python and what it found.
struct Script {
    client: Client,
    used: Samples,
    sleeps: u32,
}

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let with = Server::start(options, store, SPARES)?;
    let without = Server::start(options, store, 0)?;
    let mut raw =
        [
            Raw {
                connection: with.tcp()?,
                created: Samples::new("create", "create alone, HTTP", "ms"),
                used: Samples::new("create_first_output", "create to first output, HTTP", "ms")
                    .goal(Statistic::P50, Bound::AtMost, 6.0),
            },
            Raw {
                connection: without.tcp()?,
                created: Samples::new("create_no_spare", "create alone, HTTP, no spare", "ms"),
                used: Samples::new(
                    "create_first_output_no_spare",
                    "create to first output, HTTP, no spare",
                    "ms",
                ),
            },
        ];
    let mut scripts = scripts(options, &with)?;
    let order = api::order(IMAGE);
    for round in 0..options.warm_up + options.rounds {
        let counts = round >= options.warm_up;
        for raw in &mut raw {
            let next = ticker::now() + Duration::from_millis(options.gap_ms);
            let (created, used) = api::create_and_use(&mut raw.connection, &order);
            if counts {
                raw.created.add(created);
                raw.used.add(used);
            }
            ticker::sleep_until(next);
        }
        // A client in Python takes ten times as long, and so gets a tenth of the rounds.
        for script in scripts.iter_mut().filter(|_| round % 10 == 0 || !counts) {
            let next = ticker::now() + Duration::from_millis(options.gap_ms);
            let told = script.client.told("create");
            if counts {
                script.sleeps += told.as_ref().map_or(0, |told| told.sleeps);
                script.used.add(told.map(|told| told.ms));
            }
            ticker::sleep_until(next);
        }
    }
    let notes = scripts.iter().map(|script| {
        let (id, sleeps) = (script.used.id, script.sleeps);
        format!("{id}: the client slept {sleeps} times instead of being answered")
    });
    Ok(Measured {
        title: "From nothing to the output of the first command",
        notes: notes.collect(),
        samples: raw
            .into_iter()
            .flat_map(|raw| [raw.created, raw.used])
            .chain(scripts.into_iter().map(|script| script.used))
            .collect(),
    })
}

fn scripts(options: &Options, server: &Server) -> Result<Vec<Script>> {
    let Some(python) = &options.python else {
        return Ok(Vec::new());
    };
    let kinds = [
        (
            "barchan",
            "create_python",
            "create to first command, our Python client",
            None,
        ),
        (
            "sdk",
            "create_sdk",
            "create to first command, OpenSandbox SDK",
            Some(90.0),
        ),
        (
            "sdk-async",
            "create_sdk_async",
            "create to first command, OpenSandbox SDK, asyncio",
            Some(90.0),
        ),
    ];
    let start = |(kind, id, title, goal): (&str, _, _, Option<f64>)| {
        let used = Samples::new(id, title, "ms");
        Ok(Script {
            client: Client::start(python, kind, IMAGE, server.access())?,
            used: match goal {
                Some(goal) => used.goal(Statistic::P50, Bound::AtMost, goal),
                None => used,
            },
            sleeps: 0,
        })
    };
    kinds.into_iter().map(start).collect()
}
