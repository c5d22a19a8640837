//! Who seals is killed at any moment: the sandbox goes on, with its files as they were or sealed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use barchan_runtime::{EndReason, ErrorKind, Limits, Phase, Runtime, SealOrder, Sealed, WhenHeld};
use barchan_wire::id::SandboxId;
use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, STANDS, is_able};
use crate::native::world::{World, plan};

/// How many layers are tried to be sealed.
const ROUNDS: u32 = 120;

/// Kills processes of these names among a process's children, each after another time, until it is
/// told to stop. How many it killed of each.
pub(super) fn hunt(
    parent: i32,
    names: &[&'static str],
    is_over: &AtomicBool,
    killed: &AtomicU32,
) -> BTreeMap<&'static str, u32> {
    let mut counts = BTreeMap::new();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let (mut last, mut seen) = (0, 0);
    let name_of = |pid: i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        names.iter().copied().find(|name| comm.trim_end() == *name)
    };
    while !is_over.load(Ordering::Relaxed) {
        let all = fs::read_to_string(&children).unwrap_or_default();
        for pid in all.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let Some(name) = name_of(pid).filter(|_| pid != last) else {
                continue;
            };
            last = pid;
            seen += 1;
            if seen % 3 == 0 {
                // Some must come to an end.
                continue;
            }
            let already = killed.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(u64::from((already + 1) * 97 % 4000)));
            // In the moment in which it leads another process by its registers, that dies with it.
            if name_of(pid) != Some(name) {
                continue;
            }
            // It may have come to its end before.
            if kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).is_ok() {
                *counts.entry(name).or_default() += 1;
                killed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    counts
}

/// What became of a sandbox whose sealers were killed.
#[derive(Debug, Default)]
struct Told {
    sealed: u32,
    broken_off: u32,
    /// Who is killed in the moment in which it leads a process to its folder takes that with it,
    /// here the entrypoint: a tenth of a millisecond that the hunter cannot always keep away from.
    taken_along: u32,
}

fn order(sandbox: &SandboxId) -> SealOrder {
    SealOrder {
        sandbox: sandbox.clone(),
        when_held: WhenHeld::Copy,
        note: String::new(),
        wait: PATIENCE,
    }
}

impl World {
    async fn sealed_under_fire(&self, told: &mut Told) {
        let plan = plan("host", &["/bin/sh", "-c", STANDS], Limits::default());
        let id = plan.id.clone();
        self.native.create(plan).await.unwrap();
        self.told(&id, "round 2.").await;
        while told.sealed + told.broken_off < ROUNDS {
            match self.native.seal(order(&id)).await {
                Ok(Sealed::Layer(_)) => told.sealed += 1,
                Err(error) if error.kind == ErrorKind::LayerFailed => told.broken_off += 1,
                other => {
                    let seen = self.native.observe(&id).await.unwrap().unwrap().phase;
                    let killed = Phase::Ended(EndReason::Exit(137));
                    assert_eq!(seen, killed, "{other:?} after {told:?}");
                    told.taken_along += 1;
                    break;
                }
            }
        }
        let log = self.native.logs(&id).await.unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        assert!(!log.contains("broken"), "{log}");
        self.works_on(&id, &log).await;
        self.native.delete(&id).await.unwrap();
    }

    /// It works on, and has one root.
    async fn works_on(&self, id: &SandboxId, log: &str) {
        let number = |line: &str| {
            line.strip_prefix("round ")?
                .trim_end_matches('.')
                .parse()
                .ok()
        };
        let round: u32 = log.lines().rev().find_map(number).unwrap();
        if self.native.observe(id).await.unwrap().unwrap().phase != Phase::Running {
            return;
        }
        let log = self.told(id, &format!("round {}.", round + 3)).await;
        assert!(!log.contains("broken"), "{log}");
        let layer = loop {
            if let Ok(Sealed::Layer(layer)) = self.native.seal(order(id)).await {
                break layer;
            }
        };
        let script = "grep -c ' / / ' /proc/self/mountinfo; cat /workspace/deep/er/mark";
        let forked = self.forked(id, layer.number, script).await;
        let (roots, mark) = forked.split_once('\n').unwrap();
        assert!(roots == "1" && mark.parse::<u32>().unwrap() > 0, "{forked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sealer_leaves_the_old_state_or_the_new_one() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let launcher = i32::try_from(world.native.launcher_pid()).unwrap();
    let hunter = {
        let is_over = Arc::clone(&is_over);
        let names = &["barchan-seal"];
        std::thread::spawn(move || hunt(launcher, names, &is_over, &AtomicU32::new(0)))
    };
    let mut told = Told::default();
    while told.sealed + told.broken_off < ROUNDS {
        world.sealed_under_fire(&mut told).await;
        assert!(told.taken_along < 8, "{told:?}");
    }
    is_over.store(true, Ordering::Relaxed);
    let killed: u32 = hunter.join().unwrap().into_values().sum();
    assert!(
        told.sealed > 9 && told.broken_off > 9 && killed > 9,
        "{told:?} {killed}"
    );
}
