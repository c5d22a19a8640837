//! Sandboxes that are paused to disk: what comes back with them, what does not, and that nothing of
//! them is on the host but files in the meantime.

use std::path::PathBuf;
use std::time::Duration;

use barchan_runtime::{
    CompareOrder, EndReason, ErrorKind, Form, Limits, NewVolume, Observed, Pause, Phase, Plan,
    Runtime, RuntimeError, SealOrder, Volume, VolumeSource, WhenHeld,
};
use barchan_wire::id::SandboxId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::{PATIENCE, is_able};
use crate::native::traces::{group_of, processes_beside};
use crate::native::wedge::daemon_of;
use crate::native::world::{World, plan};

/// Counts how often it began, keeps files open in all ways that keep a layer from being exchanged,
/// and writes without end.
const ENTRYPOINT: &str = "cd /; n=$(cat /count 2>/dev/null || echo 0); echo $((n + 1)) > /count; \
    if [ $n = 0 ]; then mkdir -p /d/e; echo first > /d/e/a; chown 12:34 /d/e/a; \
    chmod 4751 /d/e/a; ln /d/e/a /d/e/b; ln -s /d/e/a /d/link; mkfifo -m 640 /d/pipe; \
    touch -d 2001-02-03T04:05:06Z /d/e/a; rm -rf /etc/fonts; fi; \
    echo lost > /tmp/memory; exec 3>>/held; (sleep 1000 >&3) & \
    echo \"has $(cat /count) $(ls /tmp)\"; while :; do echo x >&3; sleep 0.01; done";

/// What of that is seen again.
const LISTS: &str = "cat /count; cd /d && find . | sort | xargs stat -c '%n %a %u:%g %F %Y %h'; \
    cat /d/link; ls /etc/fonts 2>&1 | tail -c 10; ls /tmp";

fn to_disk() -> Pause {
    Pause::ToDisk {
        note: "a pause".to_owned(),
    }
}

fn running(script: &str) -> Plan {
    let limits = Limits {
        memory_bytes: Some(256 << 20),
        pids: Some(100),
        ..Limits::default()
    };
    plan("host", &["/bin/sh", "-c", script], limits)
}

impl World {
    async fn phase_of(&self, id: &SandboxId) -> Option<Phase> {
        let observed = self.native.observe(id).await.unwrap();
        observed.map(|it| it.phase)
    }

    /// Pauses it to disk, and sees that nothing of it is left but files.
    async fn park(&self, id: &SandboxId) {
        let daemon = daemon_of(self, id).await.as_raw_nonzero().get();
        let daemon = daemon.unsigned_abs();
        let processes = processes_beside(daemon);
        assert!(processes.len() > 1, "{processes:?}");
        let group = group_of(daemon);
        let socket = self.native.endpoint(id, 44772).await.unwrap().socket;
        self.native.pause(id, to_disk()).await.unwrap();
        assert_eq!(self.phase_of(id).await, Some(Phase::Parked));
        let is_left = |pid: &u32| PathBuf::from(format!("/proc/{pid}")).exists();
        assert!(!processes.iter().any(is_left), "{processes:?}");
        assert!(UnixStream::connect(&socket).await.is_err());
        // The kernel lets go of a group a moment after its last process.
        let until = Instant::now() + PATIENCE;
        while group.as_ref().is_some_and(|path| path.exists()) {
            assert!(Instant::now() < until, "{group:?} stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_comes_back_with_its_files_and_without_its_processes() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let plan = running(ENTRYPOINT);
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "has 1 memory").await;
    let mut layers = vec![world.seal(&id).await];
    for round in 1..=3 {
        world.park(&id).await;
        let listed = world.native.layers(&id).await.unwrap();
        let last = listed.last().unwrap().clone();
        assert_eq!(
            (last.number, last.parent, last.is_copied, &*last.note),
            (round + 1, round, false, "a pause")
        );
        layers.push(last);
        assert_eq!(listed, layers);
        let seen = world.forked(&id, round + 1, LISTS).await;
        let (count, rest) = seen.split_once('\n').unwrap();
        assert_eq!(count, round.to_string());
        for line in [
            "./e/a 4751 12:34 regular file 981173106 2",
            "./e/b 4751 12:34 regular file 981173106 2",
            "./pipe 640 0:0 fifo",
            "first\n",
            "directory",
        ] {
            assert!(rest.contains(line), "{line}: {rest}");
        }
        assert!(!rest.contains("memory"), "{rest}");
        // Paused is paused, however often it is said.
        world.native.pause(&id, to_disk()).await.unwrap();
        assert_eq!(world.native.layers(&id).await.unwrap(), layers);
        world.native.resume(&id).await.unwrap();
        assert_eq!(world.phase_of(&id).await, Some(Phase::Running));
        world.native.resume(&id).await.unwrap();
        let log = world.told(&id, &format!("has {} memory", round + 1)).await;
        assert!(!log.contains(&format!("has {round} ")), "{log}");
        assert_eq!(world.native.layers(&id).await.unwrap(), layers);
    }
    // What was open for writing was written to each time.
    let mut held: Vec<u64> = Vec::new();
    for layer in [2, 3, 4] {
        let bytes = world.forked(&id, layer, "wc -c < /held").await;
        held.push(bytes.parse().unwrap());
    }
    assert!(held.is_sorted_by(|a, b| a < b), "{held:?}");
    world.native.undo(&id, 2).await.unwrap();
    world.told(&id, "has 2 memory").await;
    world.native.delete(&id).await.unwrap();
}

/// What somebody was told is done is there: no number was printed that is not in the file.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_told_is_lost() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let script = "cd /; n=$(tail -n 1 /all 2>/dev/null || echo 0); echo \"from $n.\"; \
        while :; do n=$((n + 1)); echo $n >> /all; echo \"did $n.\"; done";
    let plan = running(script);
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    for _ in 0..5 {
        world.told(&id, "did ").await;
        world.native.pause(&id, to_disk()).await.unwrap();
        let log = world.native.logs(&id).await.unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        let told = log.lines().rev().find_map(|line| line.strip_prefix("did "));
        let told: u64 = told.unwrap().trim_end_matches('.').parse().unwrap();
        world.native.resume(&id).await.unwrap();
        let log = world.told(&id, "did ").await;
        let from = log.lines().find_map(|line| line.strip_prefix("from "));
        let from: u64 = from.unwrap().trim_end_matches('.').parse().unwrap();
        assert!(told <= from, "{told} {from}");
    }
    // A launcher that leaves while one is paused leaves nothing of it, as the world sees to.
    world.native.pause(&id, to_disk()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_process_is_refused_and_layers_are_there() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let plan = running(ENTRYPOINT);
    let id = plan.id.clone();
    let mut again = plan.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "has 1").await;
    world.native.pause(&id, Pause::Freeze).await.unwrap();
    let frozen = world.native.pause(&id, to_disk()).await.unwrap_err();
    assert_eq!(frozen.kind, ErrorKind::Conflict, "{frozen}");
    world.native.resume(&id).await.unwrap();
    world.park(&id).await;
    let native = &world.native;
    let order = SealOrder {
        sandbox: id.clone(),
        when_held: WhenHeld::Copy,
        note: String::new(),
        wait: PATIENCE,
    };
    for refused in [
        native.seal(order).await.err(),
        native.undo(&id, 1).await.err(),
        native.pause(&id, Pause::Freeze).await.err(),
        world.try_save(&id).await.err(),
    ] {
        let refused: RuntimeError = refused.expect("it has no process");
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused}");
        assert!(refused.message.contains("paused to disk"), "{refused}");
    }
    // Whoever asks for it once more gets it as it is.
    again.entrypoint = vec!["true".to_owned()];
    assert_eq!(native.create(again).await.unwrap().phase, Phase::Parked);
    let log = String::from_utf8(native.logs(&id).await.unwrap()).unwrap();
    assert!(log.contains("has 1"), "{log}");
    let order = CompareOrder {
        sandbox: id.clone(),
        from: 0,
        to: 1,
        form: Form::Lines,
    };
    let mut told = native.compare(order).await.unwrap();
    let mut lines = Vec::new();
    while let Some(piece) = told.pieces.recv().await {
        lines.extend_from_slice(&piece);
    }
    let lines = String::from_utf8(lines).unwrap();
    assert!(
        lines.contains("/d/e/a") && lines.contains("summary"),
        "{lines}"
    );
    // Its files are its own, whatever is forgotten of its layers.
    native.forget_layers(&id, &[1]).await.unwrap();
    assert_eq!(native.layers(&id).await.unwrap(), []);
    native.resume(&id).await.unwrap();
    world.told(&id, "has 2").await;
    let next = world.seal(&id).await;
    assert_eq!((next.number, next.parent), (2, 0));
    assert_eq!(world.forked(&id, 2, "cat /d/e/a").await, "first");
    native.delete(&id).await.unwrap();
}

/// What is deleted leaves nothing, which the world looks for at its end, and its volume can go.
#[tokio::test(flavor = "multi_thread")]
async fn volumes_wait_for_whom_is_paused_and_all_goes_with_a_delete() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let new = NewVolume {
        bytes: 16 << 20,
        is_asked: false,
        goes_with_sandbox: false,
    };
    let volume = Volume {
        name: "v".to_owned(),
        source: VolumeSource::Named {
            name: "kept".to_owned(),
            new: Some(new),
        },
        sub_path: String::new(),
        target: "/v".to_owned(),
        read_only: false,
    };
    let script = "echo x >> /v/marks; echo \"marks $(wc -l < /v/marks).\"; exec sleep 1000";
    let plan = Plan {
        volumes: vec![volume],
        ..running(script)
    };
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "marks 1.").await;
    world.park(&id).await;
    let in_use = world.native.remove_volume("kept").await.unwrap_err();
    assert!(matches!(in_use.kind, ErrorKind::Volume(_)), "{in_use}");
    world.native.resume(&id).await.unwrap();
    world.told(&id, "marks 2.").await;
    world.park(&id).await;
    world.native.delete(&id).await.unwrap();
    assert_eq!(world.phase_of(&id).await, None);
    let gone = world.native.resume(&id).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::NotFound);
    world.native.remove_volume("kept").await.unwrap();
}

/// Files of one that is paused are merged as well, when it was paused often.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_paused_again_and_again_has_few_layers_to_look_through() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let script = "echo x >> /marks; touch /of-$(wc -l < /marks); \
        echo \"marks $(wc -l < /marks).\"; exec sleep 1000";
    let plan = running(script);
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    for round in 1..=35 {
        world.told(&id, &format!("marks {round}.")).await;
        world.native.pause(&id, to_disk()).await.unwrap();
        world.native.resume(&id).await.unwrap();
    }
    world.told(&id, "marks 36.").await;
    world.native.pause(&id, to_disk()).await.unwrap();
    let all: Vec<u32> = (1..36).collect();
    world.native.forget_layers(&id, &all).await.unwrap();
    let looked =
        "ls /of-* | wc -l; head -1 /proc/mounts | tr :, '\\n\\n' | grep -c 'lowerdir\\|^d0'";
    let looked = world.forked(&id, 36, looked).await;
    let (files, layers) = looked.split_once('\n').unwrap();
    assert_eq!(files, "36");
    assert!(layers.parse::<u32>().unwrap() < 20, "{looked}");
    world.native.delete(&id).await.unwrap();
}

/// The sandbox ends, or its daemon is killed, about when it is being paused: it is paused, or it
/// has ended, and whoever asked is told which.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_in_the_midst_of_a_pause_is_an_end_or_a_pause() {
    let world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let (mut paused, mut ended) = (0, 0);
    for round in 0..32 {
        let is_killed = round % 2 == 0;
        let plan = match is_killed {
            true => running("echo begun; exec sleep 1000"),
            false => running(&format!("echo begun; exec sleep 0.0{round:02}")),
        };
        let id = plan.id.clone();
        world.native.create(plan).await.unwrap();
        world.told(&id, "begun").await;
        if is_killed {
            let daemon = daemon_of(&world, &id).await;
            kill_process(daemon, Signal::KILL).unwrap();
        }
        let asked = world.native.pause(&id, to_disk()).await;
        match (asked, world.phase_of(&id).await) {
            (Ok(()), Some(Phase::Parked)) => {
                world.native.resume(&id).await.unwrap();
                world.told(&id, "begun").await;
                paused += 1;
            }
            (Err(error), Some(Phase::Ended(EndReason::DaemonLost | EndReason::Exit(0)))) => {
                assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
                ended += 1;
            }
            other => panic!("{other:?}"),
        }
        world.native.delete(&id).await.unwrap();
    }
    println!("{paused} paused, {ended} ended");
}

/// A server that starts anew finds it paused; all that a killed launcher knew goes with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_takes_along_what_is_paused() {
    let mut world = World::new().await;
    if !is_able(&world) {
        return;
    }
    let plan = running(ENTRYPOINT);
    let id = plan.id.clone();
    world.native.create(plan).await.unwrap();
    world.told(&id, "has 1").await;
    world.park(&id).await;
    world.start_anew(Vec::new()).await;
    assert_eq!(world.phase_of(&id).await, Some(Phase::Parked));
    let mut changes = world.native.watch();
    let launcher = world.native.launcher_pid();
    kill_process(Pid::from_raw(launcher.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let lost = async {
        loop {
            let Observed { id: of, phase, .. } = changes.recv().await.unwrap();
            if of == id {
                return phase;
            }
        }
    };
    let lost = tokio::time::timeout(PATIENCE, lost).await.unwrap();
    assert_eq!(lost, Phase::Ended(EndReason::LauncherLost));
    let until = Instant::now() + PATIENCE;
    while world.native.launcher_pid() == launcher || world.native.list().await.is_err() {
        assert!(Instant::now() < until, "no new launcher");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.native.list().await.unwrap(), []);
    assert_eq!(
        world.native.layers(&id).await.unwrap_err().kind,
        ErrorKind::NotFound
    );
}
