//! Cells in a code context, to the last byte of their answer.

use anyhow::Result;

use super::Measured;
use crate::api;
use crate::args::Options;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{CODE_IMAGE, SPARES, Server, Store};
use crate::ticker;

/// First cells: each starts a kernel, which takes the better part of a second.
const FIRST_ROUNDS: usize = 10;
/// The language of the image's kernel.
const LANGUAGE: &str = "python";

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let id = api::create(&mut connection, &api::order(CODE_IMAGE))?;
    let mut first = Samples::new("cell_first", "a new context and its first cell", "ms");
    let mut warm = Samples::new("cell", "1+1 in a Python kernel that runs, HTTP", "ms")
        .goal(Statistic::P50, Bound::AtMost, 8.0)
        .goal(Statistic::P99, Bound::AtMost, 30.0);
    let told = |ran: Result<()>, start| {
        ran.map(|()| ticker::ms_since(start))
            .map_err(|error| format!("{error:#}"))
    };
    // Once unmeasured: the program's files are read for the first time.
    for round in 0..=FIRST_ROUNDS {
        let start = ticker::now();
        let ran = api::cell(&mut connection, &id, LANGUAGE);
        if round > 0 {
            first.add(told(ran, start));
        }
        if round < FIRST_ROUNDS {
            api::forget_cells(&mut connection, &id, LANGUAGE)?;
        }
    }
    for round in 0..options.warm_up + options.rounds {
        let start = ticker::now();
        let ran = api::cell(&mut connection, &id, LANGUAGE);
        if round >= options.warm_up {
            warm.add(told(ran, start));
        }
    }
    api::delete(&mut connection, &id)?;
    Ok(Measured {
        title: "Cells in a code context",
        samples: vec![first, warm],
        notes: Vec::new(),
    })
}
