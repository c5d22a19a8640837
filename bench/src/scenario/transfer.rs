//! A large file into a sandbox's disk and out again, beside `cp` on the disk that holds it.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

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
    let share = |samples: Samples| samples.goal(Statistic::P50, Bound::AtLeast, 60.0);
    let mut copy = Samples::new("cp", "cp on the same disk", "MB/s");
    let mut up_share = share(Samples::new("upload_of_cp", "upload, of cp", "%"));
    let mut down_share = share(Samples::new("download_of_cp", "download, of cp", "%"));
    let source = Source::new(store, options.file_mib)?;
    for round in 0..=ROUNDS {
        let copied = source.copied().map_err(|error| format!("{error:#}"));
        for (number, (connection, up, down)) in ways.iter_mut().enumerate() {
            let (sent, fetched) = one_round(connection, options.file_mib);
            if round == 0 {
                continue;
            }
            if number == 0 {
                let of_copy = |speed: &Result<f64, String>| {
                    copied
                        .clone()
                        .and_then(|copy| Ok(speed.clone()? * 100.0 / copy))
                };
                up_share.add(of_copy(&sent));
                down_share.add(of_copy(&fetched));
                copy.add(copied.clone());
            }
            up.add(sent);
            down.add(fetched);
        }
    }
    let mut samples: Vec<Samples> = ways
        .into_iter()
        .flat_map(|(_, up, down)| [up, down])
        .collect();
    samples.extend([copy, up_share, down_share]);
    Ok(Measured {
        title: "A large file in and out of a disk layer",
        samples,
        notes: vec![format!("{} MiB in each direction", options.file_mib)],
    })
}

/// A file on the disk that holds the sandboxes' disks.
struct Source {
    folder: TempDir,
    mebibytes: u64,
}

impl Source {
    fn new(store: &Store, mebibytes: u64) -> Result<Self> {
        let folder = store.state()?;
        let mut file = File::create(folder.path().join("source"))?;
        let block = api::block();
        for _ in 0..mebibytes {
            file.write_all(&block)?;
        }
        Ok(Self { folder, mebibytes })
    }

    /// The speed of a copy of it, in megabytes per second.
    fn copied(&self) -> Result<f64> {
        let copy = self.folder.path().join("copy");
        let start = ticker::now();
        let ran = Command::new("cp")
            .arg("--reflink=never")
            .arg(self.folder.path().join("source"))
            .arg(&copy)
            .status()?;
        let ms = ticker::ms_since(start);
        std::fs::remove_file(copy)?;
        anyhow::ensure!(ran.success(), "cp ended with {ran}");
        Ok((self.mebibytes * BLOCK_BYTES as u64) as f64 / 1e3 / ms)
    }
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
