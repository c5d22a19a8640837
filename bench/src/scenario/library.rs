//! The runtime's own create call, without a server, beside other sandboxes on the same root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use barchan_runtime::image::Aliases;
use barchan_runtime::native::{Native, Settings};
use barchan_runtime::{Limits, Plan, Runtime};
use barchan_wire::id::SandboxId;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::Measured;
use crate::args::Options;
use crate::peers::{Peer, Peers};
use crate::samples::{Bound, Samples, Statistic};
use crate::server::{IMAGE, PROGRAM, SPARES, Store, guests, wait_for};
use crate::ticker;

/// Size of a sandbox's disk: what a server gives by default.
const DISK_BYTES: u64 = 10 << 30;
/// How long a program's output may take to be seen, and how often it is looked for.
const OUTPUT_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

/// A runtime of our own with a state directory of its own.
struct Library {
    native: Arc<Native>,
    _state: TempDir,
    _hearing: JoinSet<()>,
}

pub(super) fn measure(options: &Options, store: &Store) -> Result<Measured> {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let with = tokio.block_on(Library::start(options, store, SPARES))?;
    let without = tokio.block_on(Library::start(options, store, 0))?;
    let image = with.native.store().resolve(IMAGE, &Aliases::default())?;
    let mut peers = Peers::start(&image, &options.hello)?;
    let mut ours = [
        (with, Samples::new("library", "Barchan, runtime call", "ms")),
        (
            without,
            Samples::new("library_no_spare", "Barchan, runtime call, no spare", "ms"),
        ),
    ];
    let mut others = [
        (
            Peer::Bare,
            Samples::new("bare", "no sandbox: the program alone", "ms"),
        ),
        (
            Peer::Bwrap,
            Samples::new("bwrap", "bwrap --unshare-all", "ms"),
        ),
        (Peer::Crun, Samples::new("crun", "crun run", "ms")),
        (
            Peer::CrunWithoutGroups,
            Samples::new("crun_no_groups", "crun run, no control groups", "ms"),
        ),
        (Peer::Runc, Samples::new("runc", "runc run", "ms")),
    ];
    for round in 0..options.warm_up + options.rounds {
        for (library, samples) in &mut ours {
            let ran = turn(options, || tokio.block_on(library.run(options.fifo)));
            if round >= options.warm_up {
                samples.add(ran);
            }
        }
        for (peer, samples) in &mut others {
            let ran = turn(options, || peers.run(*peer));
            if round >= options.warm_up {
                samples.add(ran);
            }
        }
    }
    let mut samples: Vec<Samples> = Vec::new();
    for (library, found) in ours {
        tokio.block_on(library.end())?;
        samples.push(found);
    }
    samples.extend(others.into_iter().map(|(_, found)| found));
    let ratios = ratios(&samples);
    samples.extend(ratios);
    Ok(Measured {
        title: "From the call to the first act of a static program",
        samples,
        notes: notes(&peers),
    })
}

/// One run, and the rest of its time slot, so that no burst hides what a lone caller waits for.
fn turn(options: &Options, run: impl FnOnce() -> Result<f64, String>) -> Result<f64, String> {
    let next = ticker::now() + Duration::from_millis(options.gap_ms);
    let ran = run();
    ticker::sleep_until(next);
    ran
}

/// How we compare with each of the others, by medians.
fn ratios(samples: &[Samples]) -> Vec<Samples> {
    let p50 = |id: &str| samples.iter().find(|it| it.id == id).and_then(Samples::p50);
    let rows = [
        ("ratio_bwrap", "Barchan / bwrap", "library", "bwrap"),
        ("ratio_crun", "Barchan / crun", "library", "crun"),
        (
            "ratio_crun_no_groups",
            "Barchan / crun, no control groups",
            "library",
            "crun_no_groups",
        ),
        (
            "ratio_no_spare_bwrap",
            "Barchan, no spare / bwrap",
            "library_no_spare",
            "bwrap",
        ),
    ];
    let ratio = |(id, title, ours, theirs)| {
        let mut ratio = Samples::new(id, title, "ratio");
        if ours == "library" {
            ratio = ratio.goal(Statistic::P50, Bound::AtMost, 1.0);
        }
        let both = p50(ours).zip(p50(theirs));
        ratio.add(
            both.map(|(ours, theirs)| ours / theirs)
                .ok_or_else(|| "nothing ran".to_owned()),
        );
        ratio
    };
    rows.into_iter().map(ratio).collect()
}

fn notes(peers: &Peers) -> Vec<String> {
    let mut notes = vec![
        "Barchan: writable root on a disk, own network, limits, filter; the others: the same root \
         read-only, own network, no filter, limits as said"
            .to_owned(),
    ];
    if let Some(why) = &peers.greeting.crun_refuses {
        notes.push(format!(
            "crun refuses this machine as it is ({why}); it ran where version 2 control groups \
             are out of sight, and so did the other peers"
        ));
    }
    notes
}

impl Library {
    async fn start(options: &Options, store: &Store, blanks: usize) -> Result<Self> {
        let state = store.state()?;
        let (jail, execd) = guests(options)?;
        let settings = Settings {
            state: PathBuf::from(state.path()),
            jail,
            execd,
            egress: None,
            blanks,
            disk_bytes: DISK_BYTES,
            aliases: Aliases::default(),
            host_paths: None,
            devices: "/dev".into(),
        };
        let (native, hearing) = Native::start(settings).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(hearing);
        Ok(Self {
            native,
            _state: state,
            _hearing: tasks,
        })
    }

    /// Ends the launcher and waits until it is gone.
    async fn end(&self) -> Result<()> {
        self.native.close().await?;
        let launcher = format!("/proc/{}", self.native.launcher_pid());
        wait_for(|| !Path::new(&launcher).exists());
        Ok(())
    }

    /// Milliseconds from before the call to the moment that the program says it ran at.
    async fn run(&self, without_cpu: bool) -> Result<f64, String> {
        let run = async {
            let plan = plan(without_cpu)?;
            let id = plan.id.clone();
            let before = ticker::wall_ns();
            self.native.create(plan).await?;
            let ran_at = self.output(&id).await;
            self.native.delete(&id).await?;
            Ok::<_, anyhow::Error>((ran_at? - before) as f64 / 1e6)
        };
        run.await.map_err(|error| format!("{error:#}"))
    }

    /// What the program printed: the moment at which it ran.
    async fn output(&self, id: &SandboxId) -> Result<i128> {
        let until = ticker::now() + OUTPUT_MAX;
        while ticker::now() < until {
            let log = self.native.logs(id).await?;
            if log.ends_with(b"\n") {
                let text = String::from_utf8_lossy(&log).into_owned();
                return text
                    .trim()
                    .parse()
                    .with_context(|| format!("the program printed {text:?}"));
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("no output within {} s", OUTPUT_MAX.as_secs())
    }
}

/// What a caller who names an image and a program gets.
fn plan(without_cpu: bool) -> Result<Plan> {
    Ok(Plan {
        id: uuid::Uuid::new_v4().to_string().parse()?,
        image: IMAGE.to_owned(),
        snapshot: None,
        from: None,
        entrypoint: vec![PROGRAM.to_owned()],
        env: BTreeMap::new(),
        limits: Limits {
            cpu_millis: (!without_cpu).then_some(1000),
            memory_bytes: Some(2 << 30),
            pids: Some(4096),
            disk_bytes: None,
        },
        pre_start: None,
        periodic: Vec::new(),
        volumes: Vec::new(),
        gpus: None,
        trust: None,
    })
}
