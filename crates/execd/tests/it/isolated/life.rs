//! How sessions begin and end, and that nothing of them stays.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::possible;
use crate::world::{MODERN, Setup, Stream, World, sleepers, stopwatch, until};

impl World {
    /// What the daemon has open.
    pub(super) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .unwrap()
            .count()
    }

    /// How many processes the daemon has started that live.
    pub(super) fn children(&self) -> usize {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        fs::read_to_string(path).unwrap().split_whitespace().count()
    }

    /// Starts a background run; its id.
    pub(super) fn background_in(&self, id: &str, code: &str) -> String {
        let body = json!({"code": code, "background": true});
        let answer = self.post(&format!("/v1/isolated/session/{id}/run"), &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["session_id"], id);
        answer.json()["run_id"].as_str().unwrap().to_owned()
    }

    /// The state of a background run, once it no longer runs.
    fn run_ended(&self, id: &str, run: &str) -> Value {
        let mut state = Value::Null;
        until("the run ends", || {
            state = self.about(id, &format!("/runs/{run}")).json();
            state["running"] == false
        });
        state
    }

    /// PID 1 of the newest session.
    fn init_of_session(&self) -> Pid {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        let pids = fs::read_to_string(path).unwrap();
        let pid = pids.split_whitespace().last().unwrap().parse().unwrap();
        Pid::from_raw(pid).unwrap()
    }
}

#[test]
fn a_session_lives_from_create_to_delete() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("rw");
    assert_eq!(id.len(), 36);
    let state = world.about(&id, "").json();
    assert_eq!(state["status"], "active");
    assert_eq!(state["workspace"]["mode"], "rw");
    assert_eq!(state["profile"], "strict");
    assert_eq!(state["share_net"], false);
    let run = world.run_in(&id, &json!({"code": "echo $$; pwd; echo no >&2; exit 7"}));
    assert_eq!(run.out(), format!("2\n{}\n", world.at("d").display()));
    assert_eq!((run.err().as_str(), run.code), ("no\n", 7));
    let list = world.get("/v1/isolated/sessions").json();
    assert_eq!(list["sessions"][0]["session_id"], id.as_str());
    assert_eq!(world.end_of(&id).status, 200);
    assert_eq!(
        world.end_of(&id).error(),
        (404, "CONTEXT_NOT_FOUND".to_owned())
    );
    assert_eq!(world.about(&id, "").status, 404);
    let list = world.get("/v1/isolated/sessions").json();
    assert_eq!(list["sessions"], json!([]));
}

#[test]
fn a_deleted_session_leaves_nothing() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let warm = world.isolate_in("overlay");
    world.sh_in(&warm, "true");
    assert_eq!(world.end_of(&warm).status, 200);
    until("connections end", || world.children() == 1);
    let before = world.descriptors();
    for mode in ["rw", "overlay"].repeat(4) {
        let id = world.isolate_in(mode);
        world.background_in(&id, "setsid sleep 60619 & sleep 60619");
        until("both run", || sleepers("60619") == 2);
        assert_eq!(world.end_of(&id).status, 200);
        assert_eq!(sleepers("60619"), 0);
        assert_eq!(world.children(), 1);
    }
    // The connection of the last request may still be closing, then and now.
    until("descriptors are given back", || {
        world.descriptors() <= before
    });
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", world.pid())).unwrap();
    assert!(!mounts.contains("overlay") || !mounts.contains("layer0"));
}

#[test]
fn whoever_kills_the_first_process_ends_all_of_the_session() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("overlay");
    world.background_in(&id, "setsid sleep 60620 & exec sleep 60620");
    until("both run", || sleepers("60620") == 2);
    let path = format!("/v1/isolated/session/{id}/run");
    let body = json!({"code": "echo begun; exec sleep 60620"}).to_string();
    let mut waiting = Stream::new(world.open("POST", &path, &[MODERN], Some(body.as_bytes())));
    until("it runs too", || sleepers("60620") == 3);
    kill_process(world.init_of_session(), Signal::KILL).unwrap();
    until("all have ended", || sleepers("60620") == 0);
    let mut last = None;
    while let Some(event) = waiting.next() {
        last = Some(event);
    }
    assert_eq!(last.unwrap().error.unwrap().evalue, "137");
    until("it is told", || {
        world.about(&id, "").json()["status"] == "dead"
    });
    let refused = world.post(&path, &json!({"code": "true"})).error();
    assert_eq!(refused, (500, "RUNTIME_ERROR".to_owned()));
    assert_eq!(world.end_of(&id).status, 200);
}

#[test]
fn sessions_end_with_the_daemon() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("rw");
    world.background_in(&id, "exec sleep 60621");
    until("it runs", || sleepers("60621") == 1);
    world.signal(Signal::KILL);
    until("it has ended", || sleepers("60621") == 0);
}

#[test]
fn background_runs_have_state_and_logs() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("ro");
    let run = world.background_in(&id, "echo one; echo two >&2; exit 7");
    assert_eq!(run.len(), 36);
    let state = world.run_ended(&id, &run);
    assert_eq!(state["exit_code"], 7);
    assert!(
        state["error"].is_null() && state["finished_at"].is_string(),
        "{state}"
    );
    let logs = world.about(&id, &format!("/runs/{run}/logs"));
    assert_eq!(logs.text(), "one\ntwo\n");
    assert_eq!(logs.header("execd-isolated-tail-cursor"), Some("8"));
    let rest = world.about(&id, &format!("/runs/{run}/logs?cursor=4"));
    assert_eq!(rest.text(), "two\n");
    for missing in ["/runs/none", "/runs/none/logs", "/runs/"] {
        assert_eq!(world.about(&id, missing).status, 404, "{missing}");
    }
}

#[test]
fn a_run_begins_where_the_last_one_ended() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let (id, other) = (world.isolate_in("rw"), world.isolate_in("rw"));
    world.sh_in(&id, "export A=\"it's\n1\"; mkdir -p sub; cd sub");
    let run = world.run_in(
        &id,
        &json!({"code": "export B=2; exit 3", "envs": {"C": "3"}}),
    );
    assert_eq!(run.code, 3);
    let show = "echo \"$A $B $C\"; basename \"$PWD\"";
    assert_eq!(world.sh_in(&id, show), "it's\n1 2 3\nsub\n");
    let run = world.run_in(&id, &json!({"code": "echo $A", "envs": {"A": "given"}}));
    assert_eq!(run.out(), "given\n", "what a request gives counts");
    let background = world.background_in(&id, "echo $A; export A=lost");
    world.run_ended(&id, &background);
    let logs = world.about(&id, &format!("/runs/{background}/logs"));
    assert_eq!(logs.text(), "given\n");
    assert_eq!(world.sh_in(&id, "echo $A"), "given\n");
    assert_eq!(world.sh_in(&other, show), " \nd\n".replacen(' ', "  ", 1));
    let wrong = world.run_in(&id, &json!({"code": "true\nif"}));
    assert!(wrong.err().contains("line"), "{}", wrong.err());
    assert_eq!(world.sh_in(&id, "echo $A"), "given\n");
}

#[test]
fn a_run_ends_with_its_time_or_its_caller() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("rw");
    let waited = stopwatch();
    let body = json!({"code": "echo begun; sleep 60622", "timeout_seconds": 1});
    let run = world.run_in(&id, &body);
    assert_eq!((run.out().as_str(), run.ends), ("begun\n", vec!["error"]));
    assert!(waited().as_secs() < 20);
    until("it has ended", || sleepers("60622") == 0);
    let path = format!("/v1/isolated/session/{id}/run");
    let body = json!({"code": "echo begun; sleep 60623"}).to_string();
    let mut waiting = Stream::new(world.open("POST", &path, &[MODERN], Some(body.as_bytes())));
    waiting.next();
    until("it runs", || sleepers("60623") == 1);
    drop(waiting);
    until("it has ended", || sleepers("60623") == 0);
    for (body, status) in [
        (json!({"code": ""}), 400),
        (json!({"code": "a\u{0}b"}), 400),
        (json!({"code": "true", "timeout_seconds": -1}), 400),
        (json!({"code": "true", "envs": {"A B": "x"}}), 400),
        (json!({}), 400),
    ] {
        assert_eq!(world.post(&path, &body).status, status, "{body}");
    }
}

#[test]
fn an_idle_session_goes_and_a_busy_one_stays() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let spec = |seconds: u64| {
        let path = world.at("d");
        json!({"workspace": {"path": path, "mode": "rw"}, "idle_timeout_seconds": seconds})
    };
    let (idle, busy, kept) = (
        world.isolate(&spec(1)),
        world.isolate(&spec(1)),
        world.isolate(&spec(0)),
    );
    world.background_in(&busy, "sleep 60624");
    let remaining = |id: &str| world.about(id, "").json()["idle_remaining_seconds"].clone();
    assert_eq!(remaining(&idle), 1);
    assert_eq!(remaining(&kept), Value::Null);
    until("it goes", || world.about(&idle, "").status == 404);
    assert_eq!(world.about(&busy, "").status, 200);
    assert_eq!(world.about(&kept, "").status, 200);
    assert_eq!(sleepers("60624"), 1);
    world.sh_in(&busy, "pkill -f '^sleep 60624'; true");
    until("that goes too", || world.about(&busy, "").status == 404);
}

#[test]
fn there_is_a_limit_to_sessions() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let most = barchan_wire::limits::ISOLATED_SESSIONS_MAX;
    let ids: Vec<String> = (0..most).map(|_| world.isolate_in("overlay")).collect();
    let spec = json!({"workspace": {"path": world.at("d")}});
    let refused = world.post("/v1/isolated/session", &spec);
    assert!(refused.text().contains("64"), "{}", refused.text());
    assert_eq!(refused.error(), (409, "RUNTIME_ERROR".to_owned()));
    assert_eq!(world.end_of(&ids[0]).status, 200);
    assert_eq!(world.post("/v1/isolated/session", &spec).status, 201);
}

#[test]
fn capabilities_tell_beforehand_what_a_create_will_say() {
    let world = World::new();
    if possible(&world) {
        let told = world.get("/v1/isolated/capabilities").json();
        for name in [
            "available",
            "commit_supported",
            "diff_supported",
            "setpriv_available",
        ] {
            assert_eq!(told[name], true, "{told}");
        }
        assert_eq!(told["userns_available"], false);
        assert_eq!(told["hardening"]["init_mode"], "none");
        assert_eq!(told["hardening"]["seccomp"]["state"], "disabled");
        assert_eq!(world.children(), 1, "what was tried is gone");
    }
    let poor = World::with(Setup {
        may_trace: false,
        ..Setup::default()
    });
    let told = poor.get("/v1/isolated/capabilities");
    assert_eq!(
        (told.status, &told.json()["available"]),
        (200, &json!(false))
    );
    let why = told.json()["message"].as_str().unwrap().to_owned();
    assert!(why.contains("not permitted"), "{why}");
    let spec = json!({"workspace": {"path": poor.at("d")}});
    let refused = poor.post("/v1/isolated/session", &spec);
    assert_eq!(refused.error(), (503, "NOT_SUPPORTED".to_owned()));
    assert_eq!(poor.children(), 1);
}
