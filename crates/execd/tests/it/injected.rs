//! The daemon where a container engine put it: without what our own launcher gives.

use serde_json::json;

use crate::world::{Setup, World};

/// A container's usual ways to take rights away.
const WAYS: [(&str, &[&str]); 2] = [
    (
        "an ordinary user",
        &["--reuid=65534", "--regid=65534", "--clear-groups"],
    ),
    (
        "root without capabilities",
        &["--inh-caps=-all", "--bounding-set=-all"],
    ),
];

/// A daemon for each of them. An ordinary user makes none: the other tests run as one themselves.
fn worlds() -> impl Iterator<Item = (&'static str, World)> {
    let ways = WAYS.iter().filter(|_| rustix::process::geteuid().is_root());
    ways.map(|(who, options)| {
        let setup = Setup {
            injected: Some(options),
            ..Setup::default()
        };
        (*who, World::with(setup))
    })
}

#[test]
fn every_kind_of_work_is_done_without_privileges() {
    for (who, world) in worlds() {
        let run =
            world.sh("grep -E '^(NoNewPrivs|Seccomp|CapEff|CapPrm|CapInh):' /proc/self/status");
        let held: Vec<_> = run.out().split_whitespace().map(str::to_owned).collect();
        let none = "0000000000000000";
        let wanted = [
            "CapInh:",
            none,
            "CapPrm:",
            none,
            "CapEff:",
            none,
            "NoNewPrivs:",
            "1",
            "Seccomp:",
            "2",
        ];
        assert_eq!(held, wanted, "{who}: {run:?}");
        let path = world.d("file");
        for (route, body, status) in [
            ("/x/fs/write", json!({"path": path, "content": "x"}), 200),
            ("/x/fs/read", json!({"path": path}), 200),
            ("/session", json!({}), 200),
            ("/pty", json!({}), 201),
            ("/code/context", json!({"language": "cobol"}), 400),
        ] {
            let answer = world.post(route, &body);
            assert_eq!(answer.status, status, "{who}: {route} {}", answer.text());
        }
        assert_eq!(world.get("/metrics").status, 200, "{who}");
    }
}

#[test]
fn isolated_sessions_are_said_to_be_impossible_before_anyone_tries() {
    for (who, world) in worlds() {
        let told = world.get("/v1/isolated/capabilities").json();
        assert_eq!(told["available"], false, "{who}: {told}");
        let spec = json!({"workspace": {"path": world.at("d")}});
        let refused = world.post("/v1/isolated/session", &spec).error();
        assert_eq!(refused, (503, "NOT_SUPPORTED".to_owned()), "{who}");
    }
}
