//! Sessions: one living shell that takes one run after another.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{MODERN, Run, Setup, Stream, World, sleepers, stopwatch, until};

/// A session of a world.
pub(crate) struct Session<'a> {
    pub(crate) world: &'a World,
    pub(crate) id: String,
}

impl<'a> Session<'a> {
    pub(crate) fn open(world: &'a World, body: &Value) -> Self {
        let answer = world.post("/session", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.json()["session_id"].as_str().unwrap().to_owned();
        Self { world, id }
    }

    pub(crate) fn new(world: &'a World) -> Self {
        Self::open(world, &json!({}))
    }

    pub(crate) fn path(&self) -> String {
        format!("/session/{}/run", self.id)
    }

    pub(crate) fn start(&self, body: &Value) -> Stream {
        self.world.stream(&self.path(), body, MODERN)
    }

    pub(crate) fn run(&self, body: &Value) -> Run {
        self.start(body).finish()
    }

    pub(crate) fn sh(&self, script: &str) -> Run {
        self.run(&json!({"command": script}))
    }

    /// Runs scripts one after another and compares code, output and errors.
    #[track_caller]
    pub(crate) fn check(&self, rows: &[(&str, i32, &str, &str)]) {
        for (script, code, out, err) in rows {
            let run = self.sh(script);
            let seen = (run.code, run.out(), run.err());
            assert_eq!(
                seen,
                (*code, (*out).to_owned(), (*err).to_owned()),
                "{script}"
            );
        }
    }
}

#[test]
fn a_shell_keeps_all_its_state() {
    let world = World::new();
    let session = Session::new(&world);
    let d = world.d("sub");
    std::fs::create_dir(&d).unwrap();
    let d = d.to_str().unwrap();
    session.check(&[
        (
            "x=1; export y=2; a=(p 'q r'); declare -A m=([k]=v)",
            0,
            "",
            "",
        ),
        (
            "f() { echo \"f $1 $x\"; }; alias hi='echo aliased'; shopt -s nullglob",
            0,
            "",
            "",
        ),
        (
            "set -o pipefail; trap 'echo usr1' USR1; umask 027",
            0,
            "",
            "",
        ),
        ("cd sub", 0, "", ""),
        (
            "echo $x $y ${a[1]} ${m[k]}; f z; hi; pwd",
            0,
            &format!("1 2 q r v\nf z 1\naliased\n{d}\n"),
            "",
        ),
        ("false | true", 1, "", ""),
        (
            "kill -USR1 $$; umask; shopt -q nullglob && echo nullglob",
            0,
            "usr1\n0027\nnullglob\n",
            "",
        ),
        ("sh -c 'echo \"[$x$y]\"'", 0, "[2]\n", ""),
        ("sleep 301.1 & echo", 0, "\n", ""),
        ("kill %1; wait %1", 143, "", ""),
    ]);
}

#[test]
fn codes_and_streams_are_exact() {
    let world = World::new();
    let session = Session::new(&world);
    session.check(&[
        (
            "printf 'one\\ntwo'; printf err >&2; (exit 7)",
            7,
            "one\ntwo",
            "err",
        ),
        ("sh -c 'exit 7'", 7, "", ""),
        ("printf '\\377bad\\nok\\n'", 0, "\u{fffd}bad\nok\n", ""),
        ("cat; echo rc=$?", 0, "rc=0\n", ""),
        ("cat <<'EOF'\none\n$two\nEOF", 0, "one\n$two\n", ""),
        (
            "echo saved; echo 0; echo '# whole'",
            0,
            "saved\n0\n# whole\n",
            "",
        ),
        ("set -x; echo x", 0, "x\n", "++ echo x\n"),
        ("echo y; set +x", 0, "y\n", "++ echo y\n++ set +x\n"),
    ]);
    assert_eq!(session.sh("sh -c 'kill -9 $$'").code, 137);
    let run = session.sh("\n\nno_such_program");
    assert_eq!(run.code, 127);
    assert!(
        run.err()
            .ends_with("bash: line 3: no_such_program: command not found\n"),
        "{run:?}"
    );
}

#[test]
fn much_output_of_both_kinds_arrives_whole() {
    let world = World::new();
    let session = Session::new(&world);
    let script = "for i in {1..60000}; do echo out-$i; echo err-$i >&2; done";
    let run = session.sh(script);
    assert_eq!(
        (run.code, run.stdout.len(), run.stderr.len()),
        (0, 60_000, 60_000)
    );
    assert_eq!(run.stdout[59_999], "out-60000\n");
    let run = session.sh("head -c 1500000 /dev/zero | tr '\\0' x; echo; echo ok");
    assert_eq!(run.stdout.len(), 2);
    assert_eq!(
        (run.stdout[0].len(), run.stdout[1].as_str()),
        (1_500_001, "ok\n")
    );
}

#[test]
fn a_long_script_is_no_matter() {
    let world = World::new();
    let session = Session::new(&world);
    let run = session.sh(&format!("echo {} | wc -c", "x".repeat(300_000)));
    assert_eq!(run.out().trim(), "300001");
}

#[test]
fn sessions_are_apart_and_a_session_takes_turns() {
    let world = World::new();
    let (one, two) = (Session::new(&world), Session::new(&world));
    one.sh("x=one");
    two.sh("x=two");
    let slow = one.start(&json!({"command": "sleep 0.5; echo slow $x; x=later"}));
    let queued = one.start(&json!({"command": "echo queued $x"}));
    assert_eq!(two.sh("echo quick $x").out(), "quick two\n");
    assert_eq!(slow.finish().out(), "slow one\n");
    assert_eq!(queued.finish().out(), "queued later\n");
}

#[test]
fn a_queue_is_bounded_and_shows_signs_of_life() {
    let world = World::new();
    let session = Session::new(&world);
    let slow = session.start(&json!({"command": "sleep 305.5", "timeout": 4000}));
    let queued: Vec<_> = (0..16)
        .map(|_| session.start(&json!({"command": "echo x"})))
        .collect();
    let answer = world.post(&session.path(), &json!({"command": "echo x"}));
    assert_eq!(answer.error(), (409, "RUNTIME_ERROR".to_owned()));
    assert_eq!(slow.finish().code, 143);
    let runs: Vec<_> = queued.into_iter().map(Stream::finish).collect();
    assert!(
        runs.iter().all(|run| run.out() == "x\n" && run.pings > 0),
        "{runs:?}"
    );
}

#[test]
fn a_run_does_not_wait_for_what_it_left_running() {
    let world = World::new();
    let session = Session::new(&world);
    let waited = stopwatch();
    let run = session.sh("(sleep 1; echo late) & sleep 306.6 & echo started");
    assert_eq!(run.out(), "started\n");
    assert_eq!(
        session.sh("sleep 1.5; echo next").out(),
        "next\n",
        "late output is not its own"
    );
    assert!(waited() < Duration::from_secs(5));
    assert_eq!(sleepers("306.6"), 1);
    assert_eq!(
        world.delete(&format!("/session/{}", session.id)).status,
        200
    );
    until("nothing of it lives", || sleepers("306.6") == 0);
}

#[test]
fn directories_of_sessions_and_runs() {
    let world = World::with(Setup {
        env: json!({"WHERE": "there"}),
        ..Setup::default()
    });
    let session = Session::open(&world, &json!({"cwd": "new/$WHERE"}));
    let new = world.d("new/there").to_str().unwrap().to_owned();
    assert_eq!(session.sh("pwd").out(), format!("{new}\n"));
    let odd = world.d("it's odd");
    std::fs::create_dir(&odd).unwrap();
    let odd = odd.to_str().unwrap();
    let run = session.run(&json!({"command": "pwd; echo \"it's\"", "cwd": odd}));
    assert_eq!(run.out(), format!("{odd}\nit's\n"));
    assert_eq!(
        session.sh("pwd").out(),
        format!("{odd}\n"),
        "it stays there"
    );
    let answer = world.post(
        &session.path(),
        &json!({"command": "pwd", "cwd": "/no/such"}),
    );
    assert_eq!(answer.error(), (400, "INVALID_REQUEST_BODY".to_owned()));
    assert_eq!(
        session
            .run(&json!({"command": "echo no", "cwd": "nope"}))
            .code,
        1
    );
    std::fs::write(world.d("file"), "").unwrap();
    for cwd in ["file", "$NOT_SET", "file/x"] {
        let answer = world.post("/session", &json!({"cwd": cwd}));
        assert_eq!(answer.status, 400, "{cwd}");
    }
}

#[test]
fn settings_are_read_when_a_session_is_opened() {
    let world = World::new();
    std::fs::write(world.at("settings"), "A='one two'\n").unwrap();
    assert_eq!(Session::new(&world).sh("echo $A").out(), "one two\n");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let world = World::new();
    let session = Session::new(&world);
    for body in [
        json!({}),
        json!({"command": " "}),
        json!({"command": "a\0b"}),
        json!({"command": "a", "timeout": -1}),
        json!({"command": 5}),
    ] {
        let answer = world.post(&session.path(), &body);
        assert_eq!(
            answer.error(),
            (400, "INVALID_REQUEST_BODY".to_owned()),
            "{body}"
        );
    }
    let unknown = (404, "CONTEXT_NOT_FOUND".to_owned());
    assert_eq!(
        world
            .post("/session/none/run", &json!({"command": "a"}))
            .error(),
        unknown
    );
    assert_eq!(world.delete("/session/none").error(), unknown);
    assert_eq!(world.get("/session").status, 405);
    let empty = world.open("POST", "/session", &[], Some(b"")).finish();
    assert_eq!(empty.status, 200);
    let none = world.open("POST", "/session", &[], None).finish();
    assert_eq!(none.status, 200);
    assert_eq!(
        world.delete(&format!("/session/{}", session.id)).status,
        200
    );
    assert_eq!(
        world
            .post(&session.path(), &json!({"command": "a"}))
            .error(),
        unknown
    );
}

#[test]
fn there_are_not_too_many_sessions_and_none_leaves_a_folder() {
    let world = World::new();
    let sessions: Vec<_> = (0..64).map(|_| Session::new(&world)).collect();
    let answer = world.post("/session", &json!({}));
    assert_eq!(answer.error(), (409, "RUNTIME_ERROR".to_owned()));
    let folder = format!("/dev/shm/.barchan-{}", sessions[0].id);
    assert!(std::path::Path::new(&folder).exists());
    for session in &sessions {
        assert_eq!(
            world.delete(&format!("/session/{}", session.id)).status,
            200
        );
    }
    assert!(!std::path::Path::new(&folder).exists());
    Session::new(&world);
}
