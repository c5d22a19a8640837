//! A snapshot of what a sandbox wrote, and sandboxes made of it, beside `cp -a` of the same on the
//! disk that holds both.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use super::Measured;
use crate::args::Options;
use crate::http::Connection;
use crate::samples::Samples;
use crate::server::{IMAGE, SPARES, Server, Store};
use crate::{api, snapshots, ticker};

/// The little that a sandbox wrote, in mebibytes; the much is the file of `--file-mib`.
const LITTLE_MIB: u64 = 10;
/// Rounds with little and with much: a gigabyte takes seconds.
const ROUNDS: [usize; 2] = [20, 5];

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let server = Server::start(options, store, SPARES)?;
    let mut connection = server.tcp()?;
    let ms = |id, title| Samples::new(id, title, "ms");
    let mut figures = [
        [
            ms("snapshot_little", "snapshot of 10 MiB"),
            ms("snapshot_little_cp", "cp -a of 10 MiB"),
            ms("snapshot_little_use", "first output, made of it"),
        ],
        [
            ms("snapshot_much", "snapshot of the large file"),
            ms("snapshot_much_cp", "cp -a of the large file"),
            ms("snapshot_much_use", "first output, made of it"),
        ],
    ];
    let sizes = [LITTLE_MIB, options.file_mib];
    for ((mebibytes, rounds), figures) in sizes.into_iter().zip(ROUNDS).zip(&mut figures) {
        let source = Source::new(store, mebibytes)?;
        for round in 0..=rounds {
            let (taken, used) = one_round(&mut connection, mebibytes);
            let copied = source.copied().map_err(|error| format!("{error:#}"));
            // The first one reads what has not been read before.
            if round > 0 {
                let outcomes = [taken, copied, used];
                for (figure, outcome) in figures.iter_mut().zip(outcomes) {
                    figure.add(outcome);
                }
            }
        }
    }
    Ok(Measured {
        title: "Snapshots",
        samples: figures.into_iter().flatten().collect(),
        notes: vec![format!(
            "the large file has {} MiB; a snapshot is on the disk when it is ready, a copy may \
             still be in memory",
            options.file_mib
        )],
    })
}

/// How long a snapshot took, and a sandbox made of it until its first output. The sandbox is a new
/// one each time, which has just written: what it wrote is in memory, as for `cp`.
fn one_round(
    connection: &mut Connection,
    mebibytes: u64,
) -> (Result<f64, String>, Result<f64, String>) {
    let told = |error: anyhow::Error| format!("{error:#}");
    let written = api::create(connection, &api::order(IMAGE)).and_then(|id| {
        api::upload(connection, &id, mebibytes)?;
        Ok(id)
    });
    let sandbox = match written {
        Ok(id) => id,
        Err(error) => return (Err(told(error)), Err("there is no sandbox".to_owned())),
    };
    let start = ticker::now();
    let taken = snapshots::take(connection, &sandbox).map(|id| (ticker::ms_since(start), id));
    let (taken, used) = match taken {
        Err(error) => (Err(told(error)), Err("there is no snapshot".to_owned())),
        Ok((ms, id)) => {
            let (_, used) = api::create_and_use(connection, &snapshots::order(&id));
            let gone = snapshots::remove(connection, &id).map_err(told);
            (gone.map(|()| ms), used)
        }
    };
    let gone = api::delete(connection, &sandbox).map_err(told);
    (gone.and(taken), used)
}

/// A folder with the same in it, on the disk that holds the sandboxes' disks.
struct Source {
    folder: TempDir,
}

impl Source {
    fn new(store: &Store, mebibytes: u64) -> Result<Self> {
        let folder = store.state()?;
        let source = folder.path().join("source");
        fs::create_dir(&source)?;
        let mut file = File::create(source.join("large"))?;
        let block = api::block();
        for _ in 0..mebibytes {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        Ok(Self { folder })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How long a copy of it takes, in milliseconds.
    fn copied(&self) -> Result<f64> {
        let copy = self.place("copy");
        let start = ticker::now();
        let ran = Command::new("cp")
            .args(["-a", "--reflink=never"])
            .args([&self.place("source"), &copy])
            .status()?;
        let ms = ticker::ms_since(start);
        fs::remove_dir_all(copy)?;
        anyhow::ensure!(ran.success(), "cp ended with {ran}");
        Ok(ms)
    }
}
