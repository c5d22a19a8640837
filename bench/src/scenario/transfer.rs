//! A large file into a sandbox's disk and out again.

use anyhow::Result;

use super::Measured;
use crate::api::{self, BLOCK_BYTES};
use crate::args::Options;
use crate::http::Connection;
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::ticker;

/// Rounds: a gigabyte each way takes seconds.
const ROUNDS: usize = 5;

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let goal = |samples: Samples| samples.goal(Statistic::P50, Bound::AtLeast, 700.0);
    let mut ways = [
        (
            server.tcp()?,
            goal(Samples::new("upload", "upload by TCP", "MB/s")),
            goal(Samples::new("download", "download by TCP", "MB/s")),
        ),
        (
            server.unix()?,
            goal(Samples::new("upload_unix", "upload by Unix socket", "MB/s")),
            goal(Samples::new(
                "download_unix",
                "download by Unix socket",
                "MB/s",
            )),
        ),
    ];
    for round in 0..=ROUNDS {
        for (connection, up, down) in &mut ways {
            let (sent, fetched) = one_round(connection, options.file_mib);
            if round > 0 {
                up.add(sent);
                down.add(fetched);
            }
        }
    }
    let samples = ways
        .into_iter()
        .flat_map(|(_, up, down)| [up, down])
        .collect();
    Ok(Measured {
        title: "A large file in and out of a disk layer",
        samples,
        notes: vec![format!("{} MiB in each direction", options.file_mib)],
    })
}

/// Each round has a sandbox of its own, so that none finds the blocks of another's disk.
fn one_round(
    connection: &mut Connection,
    mebibytes: u64,
) -> (Result<f64, String>, Result<f64, String>) {
    let id = match api::create(connection, &api::order(IMAGE)) {
        Ok(id) => id,
        Err(error) => return (Err(format!("{error:#}")), Err(format!("{error:#}"))),
    };
    let speed = |ms: f64| (mebibytes * BLOCK_BYTES as u64) as f64 / 1e3 / ms;
    let start = ticker::now();
    let sent = api::upload(connection, &id, mebibytes);
    let sent = sent.map(|()| speed(ticker::ms_since(start)));
    let start = ticker::now();
    let fetched = api::download(connection, &id, mebibytes);
    let fetched = fetched.map(|()| speed(ticker::ms_since(start)));
    let removed = api::remove(connection, &id).and_then(|()| api::delete(connection, &id));
    let fetched = fetched.and_then(|speed| removed.map(|()| speed));
    (
        sent.map_err(|error| format!("{error:#}")),
        fetched.map_err(|error| format!("{error:#}")),
    )
}
