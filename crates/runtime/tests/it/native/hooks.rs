//! Programs that run beside the entrypoint.

use barchan_runtime::{EndReason, Hook, Limits, Plan};

use super::world::{World, plan};

fn hook(name: &str, schedule: &str, script: &str, timeout_s: u64) -> Hook {
    Hook {
        name: name.to_owned(),
        schedule: schedule.to_owned(),
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        timeout_s,
    }
}

fn sandbox(entrypoint: &str, pre_start: Option<Hook>, periodic: Vec<Hook>) -> Plan {
    Plan {
        pre_start,
        periodic,
        ..plan("host", &["/bin/sh", "-c", entrypoint], Limits::default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_before_the_start_decides_whether_there_is_one() {
    let world = World::new().await;
    for (script, timeout_s, reason, log) in [
        (
            "echo ready > mark; echo made",
            9,
            EndReason::Exit(0),
            "made\nready\n",
        ),
        // What it leaves behind runs on, and holds nobody up.
        ("sleep 9 & echo up > mark", 9, EndReason::Exit(0), "up\n"),
        (
            "printf no; exit 7",
            9,
            EndReason::Exit(7),
            "no\nbarchan: the hook \"preStart\" failed: exit status 7\n",
        ),
        (
            "sleep 60",
            1,
            EndReason::Exit(137),
            "barchan: the hook \"preStart\" failed: timeout: killed after 1000 ms \
             (signal: killed)\n",
        ),
    ] {
        let hook = hook("preStart", "", script, timeout_s);
        let found = world
            .run_plan(sandbox("cat mark", Some(hook), Vec::new()))
            .await;
        assert_eq!(found, (reason, log.to_owned()), "{script}");
    }
    let missing = Hook {
        argv: vec!["/no/such/program".to_owned()],
        ..hook("preStart", "", "", 9)
    };
    let (reason, log) = world
        .run_plan(sandbox("true", Some(missing), Vec::new()))
        .await;
    assert_eq!(reason, EndReason::Exit(127));
    assert!(log.contains("/no/such/program"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn periodic_hooks_come_again_and_their_failures_are_told() {
    let world = World::new().await;
    let counts = hook("counts", "@every 1s", "echo x >> times; echo tick", 9);
    let fails = hook("fails", "@every 1s", "exit 3", 9);
    // Waits for both, with a limit, and shows how often the first came.
    let waits = "for n in $(seq 150); do [ $(cat times 2>/dev/null | wc -l) -ge 2 ] && exit 0; \
                 sleep 0.1; done; exit 1";
    let (reason, log) = world
        .run_plan(sandbox(waits, None, vec![counts, fails]))
        .await;
    assert_eq!(reason, EndReason::Exit(0), "{log}");
    assert!(log.contains("tick\n"), "{log}");
    assert!(
        log.contains("barchan: the hook \"fails\" failed: exit status 3\n"),
        "{log}"
    );
}
