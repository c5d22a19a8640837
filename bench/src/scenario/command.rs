//! Commands in a sandbox that runs, to the last byte of their answer.

use anyhow::Result;

use super::Measured;
use crate::api::{self, Order};
use crate::args::Options;
use crate::python::Client;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::ticker;

/// How much a command prints at once, in mebibytes, and how often.
const OUTPUT_MIB: u64 = 1024;
const OUTPUT_ROUNDS: usize = 3;

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let id = api::create(&mut connection, &api::order(IMAGE))?;
    let mut ping = Samples::new("ping", "there and back through the proxy, no command", "ms");
    let goal = |samples: Samples, p50, p99| {
        samples
            .goal(Statistic::P50, Bound::AtMost, p50)
            .goal(Statistic::P99, Bound::AtMost, p99)
    };
    let mut direct = goal(
        Samples::new("command_sh", "sh -c 'echo hi', HTTP", "ms"),
        1.5,
        4.0,
    );
    let mut script = Samples::new("command_script", "echo hi in the image's shell, HTTP", "ms");
    let mut clients = clients(options, &server)?;
    for round in 0..options.warm_up + options.rounds {
        let start = ticker::now();
        let pinged = api::ping(&mut connection, &id).map(|()| ticker::ms_since(start));
        let mut orders = [Order::Sh, Order::Script].map(|order| {
            let start = ticker::now();
            let done = api::command(&mut connection, &id, order);
            done.map(|_| ticker::ms_since(start))
                .map_err(|error| format!("{error:#}"))
        });
        let told: Vec<_> = clients
            .iter_mut()
            .map(|(client, _)| client.ask("command"))
            .collect();
        if round >= options.warm_up {
            ping.add(pinged.map_err(|error| format!("{error:#}")));
            for (samples, outcome) in [&mut direct, &mut script].into_iter().zip(&mut orders) {
                samples.add(std::mem::replace(outcome, Ok(0.0)));
            }
            for ((_, samples), told) in clients.iter_mut().zip(told) {
                samples.add(told);
            }
        }
    }
    let mut output = Samples::new("command_output", "a gibibyte of output, HTTP", "MB/s");
    for _ in 0..OUTPUT_ROUNDS {
        let start = ticker::now();
        let told = api::output(&mut connection, &id, OUTPUT_MIB);
        let speed = (OUTPUT_MIB * api::BLOCK_BYTES as u64) as f64 / 1e3 / ticker::ms_since(start);
        output.add(told.map(|()| speed).map_err(|error| format!("{error:#}")));
    }
    api::delete(&mut connection, &id)?;
    let clients = clients.into_iter().map(|(_, samples)| samples);
    Ok(Measured {
        title: "A command in a sandbox that runs",
        samples: [ping, direct, script, output]
            .into_iter()
            .chain(clients)
            .collect(),
        notes: Vec::new(),
    })
}

fn clients(options: &Options, server: &Server) -> Result<Vec<(Client, Samples)>> {
    let Some(python) = &options.python else {
        return Ok(Vec::new());
    };
    let kinds = [
        ("barchan", "command_python", "echo hi, our Python client"),
        ("sdk", "command_sdk", "echo hi, OpenSandbox SDK"),
        (
            "sdk-async",
            "command_sdk_async",
            "echo hi, OpenSandbox SDK, asyncio",
        ),
    ];
    let start = |(kind, id, title): (&str, _, _)| {
        let samples = Samples::new(id, title, "ms").goal(Statistic::P50, Bound::AtMost, 5.0);
        Ok((
            Client::start(python, kind, IMAGE, server.access())?,
            samples,
        ))
    };
    kinds.into_iter().map(start).collect()
}
