//! A sandbox whose daemon does not answer any more is ended for it; one that is slow, or stands
//! still because it was told to, is not.

use std::fs;
use std::process::Command;
use std::time::Duration;

use barchan_runtime::{EXECD_PORT, EndReason, Limits, Observed, Pause, Phase, Runtime};
use barchan_wire::id::SandboxId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::broadcast::Receiver;
use tokio::task::JoinSet;

use super::traces::{daemons_of, processes_beside};
use super::world::{World, plan};

/// Longest time from a wedge to its end: what is promised, and as much again for a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// As many busy processes as a careless build starts.
const BUSY: &str = "for n in $(seq 64); do while :; do :; done & done; ";

/// The daemon of a sandbox: the one beside whom a process knows the sandbox's id, as the
/// entrypoint does once it runs.
pub(crate) async fn daemon_of(world: &World, id: &SandboxId) -> Pid {
    let mark = format!("OPENSANDBOX_ID={id}");
    let is_marked = |pid: u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|it| it == mark.as_bytes())
    };
    let is_own = |daemon: &u32| processes_beside(*daemon).into_iter().any(is_marked);
    let looking = async {
        loop {
            let daemons = daemons_of(world.native.launcher_pid());
            if let Some(own) = daemons.into_iter().find(is_own) {
                return own;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, looking).await;
    Pid::from_raw(found.expect("it runs").cast_signed()).unwrap()
}

async fn create(world: &World, entrypoint: &[&str]) -> SandboxId {
    let limits = Limits {
        cpu_millis: Some(1000),
        ..Limits::default()
    };
    let created = world.native.create(plan("host", entrypoint, limits)).await;
    created.unwrap().id
}

async fn idle(world: &World) -> SandboxId {
    create(world, &["tail", "-f", "/dev/null"]).await
}

async fn end_of(changes: &mut Receiver<Observed>, id: &SandboxId) -> EndReason {
    let seen = async {
        loop {
            let change = changes.recv().await.unwrap();
            if let (true, Phase::Ended(reason)) = (change.id == *id, change.phase) {
                return reason;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen)
        .await
        .expect("nobody is told that it does not answer")
}

/// Wedges a sandbox of its own and waits for its end: whoever was wedged before must have ended.
async fn outlast_a_wedge(world: &World) {
    let mut changes = world.native.watch();
    let id = idle(world).await;
    kill_process(daemon_of(world, &id).await, Signal::STOP).unwrap();
    assert_eq!(
        end_of(&mut changes, &id).await,
        EndReason::DaemonUnresponsive
    );
}

async fn phase(world: &World, id: &SandboxId) -> Phase {
    let observed = world.native.observe(id).await.unwrap();
    observed.expect("it is known until it is deleted").phase
}

async fn answers(world: &World, id: &SandboxId) -> bool {
    let Ok(upstream) = world.native.endpoint(id, EXECD_PORT).await else {
        return false;
    };
    let Ok(mut stream) = UnixStream::connect(&upstream.socket).await else {
        return false;
    };
    let question = b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n";
    if stream.write_all(question).await.is_err() {
        return false;
    }
    let mut answer = [0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer));
    read.await.is_ok_and(|read| read.is_ok()) && &answer == b"HTTP/1.1 200"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_daemon_ends_its_sandbox_with_the_reason() {
    let world = World::new().await;
    let mut changes = world.native.watch();
    let (id, neighbour) = (idle(&world).await, idle(&world).await);
    kill_process(daemon_of(&world, &id).await, Signal::STOP).unwrap();
    assert_eq!(
        end_of(&mut changes, &id).await,
        EndReason::DaemonUnresponsive
    );
    // Whoever lists, another server after this one too, learns why.
    let ended = Phase::Ended(EndReason::DaemonUnresponsive);
    assert_eq!(phase(&world, &id).await, ended);
    assert_eq!(world.native.logs(&id).await.unwrap(), b"");
    assert_eq!(phase(&world, &neighbour).await, Phase::Running);
    assert!(answers(&world, &neighbour).await);
    world.native.delete(&id).await.unwrap();
    assert!(world.native.observe(&id).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_takes_its_daemons_descriptors_ends() {
    let world = World::new().await;
    for descriptors in [0, 3] {
        let take = format!("prlimit --pid 1 --nofile={descriptors}:{descriptors}");
        let script = format!("{take} && sleep 600");
        let (reason, log) = world.run(&script, Limits::default()).await;
        assert_eq!(reason, EndReason::DaemonUnresponsive, "{take}: {log}");
    }
}

/// The rest of what its root may take does not wedge a daemon: it answers on, or ends at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_other_means_answers_or_ends() {
    let world = World::new().await;
    let take = "for what in as cpu data fsize memlock nproc sigpending stack; do \
                prlimit --pid 1 --$what=0:0 || exit 1; done; exec sleep 600";
    let id = create(&world, &["/bin/sh", "-c", take]).await;
    for _ in 0..2 {
        outlast_a_wedge(&world).await;
        if phase(&world, &id).await == Phase::Running && answers(&world, &id).await {
            continue;
        }
        // It may be the question that ends it.
        let ending = async {
            while phase(&world, &id).await == Phase::Running {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, ending).await;
        ended.expect("it neither answers nor ends");
        let lost = Phase::Ended(EndReason::DaemonLost);
        assert_eq!(phase(&world, &id).await, lost);
    }
}

/// A daemon has more rights than its sandbox's root, who may therefore not put it last.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_inside_makes_the_daemon_wait_in_turn() {
    let world = World::new().await;
    let script = "renice -n 5 -p $$ >/dev/null && chrt --idle --pid 0 $$ || exit 1
                  renice -n 5 -p 1 2>/dev/null || chrt --idle --pid 0 1 2>/dev/null || echo held";
    let (reason, log) = world.run(script, Limits::default()).await;
    assert_eq!((reason, log.as_str()), (EndReason::Exit(0), "held\n"));
}

/// A daemon that gets no processor gets none to die either.
#[tokio::test(flavor = "multi_thread")]
async fn a_starved_daemon_ends_as_soon_as_another() {
    let world = World::new().await;
    if !world.native.capabilities().limit_cpu {
        println!("this needs control groups; nobody inside can do it either way");
        return;
    }
    let mut changes = world.native.watch();
    let script = format!("{BUSY} wait");
    let id = create(&world, &["/bin/sh", "-c", &script]).await;
    let daemon = daemon_of(&world, &id).await.as_raw_nonzero().to_string();
    let last = ["--idle", "--pid", "0", &daemon];
    assert!(Command::new("chrt").args(last).status().unwrap().success());
    assert_eq!(
        end_of(&mut changes, &id).await,
        EndReason::DaemonUnresponsive
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_sandbox_lives() {
    let world = World::new().await;
    let script = format!("{BUSY} wait");
    let id = create(&world, &["/bin/sh", "-c", &script]).await;
    for _ in 0..3 {
        outlast_a_wedge(&world).await;
        assert_eq!(phase(&world, &id).await, Phase::Running);
    }
    assert!(answers(&world, &id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_is_not_asked() {
    let world = World::new().await;
    if !world.native.capabilities().pause {
        println!("this host cannot pause: nothing to see here");
        return;
    }
    let id = idle(&world).await;
    world.native.pause(&id, Pause::Freeze).await.unwrap();
    outlast_a_wedge(&world).await;
    assert_eq!(phase(&world, &id).await, Phase::Paused);
    world.native.resume(&id).await.unwrap();
    outlast_a_wedge(&world).await;
    assert_eq!(phase(&world, &id).await, Phase::Running);
    assert!(answers(&world, &id).await);
}

/// Whoever watches gets no processor for as long as would condemn a daemon.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_starved_server_condemns_nobody() {
    let world = World::new().await;
    let id = idle(&world).await;
    let daemon = daemon_of(&world, &id).await;
    kill_process(daemon, Signal::STOP).unwrap();
    let mut starving = JoinSet::new();
    starving.spawn(async move {
        std::thread::sleep(Duration::from_secs(6));
        kill_process(daemon, Signal::CONT).unwrap();
    });
    starving.join_next().await.unwrap().unwrap();
    assert!(answers(&world, &id).await);
    outlast_a_wedge(&world).await;
    assert_eq!(phase(&world, &id).await, Phase::Running);
}
