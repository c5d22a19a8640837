//! Commands about sandboxes and what runs in them.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fake::{Fake, ID, OTHER, Script};
use crate::program::Ran;

fn says(kind: &str, text: &str) -> Value {
    json!({"type": kind, "text": text, "timestamp": 1})
}

fn ends(evalue: &str) -> Value {
    let error = json!({"ename": "CommandExecError", "evalue": evalue, "traceback": []});
    json!({"type": "error", "timestamp": 2, "error": error})
}

async fn ran(fake: &Fake, arguments: &[&str]) -> Ran {
    fake.program(arguments).output().await.unwrap().into()
}

#[tokio::test]
async fn run_passes_on_output_and_code_and_deletes_the_sandbox() {
    let script = vec![says("stdout", "out\n"), says("stderr", "err\n"), ends("7")];
    let fake = Fake::start(Script::Says(script));
    let arguments = [
        "run",
        "--memory",
        "256Mi",
        "-e",
        "A=b=c",
        "--timeout",
        "10s",
        "--",
        "sh",
    ];
    let ran = ran(&fake, &[&arguments[..], &["-c", "x --json"]].concat()).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(7), "out\n", "err\n")
    );
    assert_eq!(fake.calls(), ["create", "command", &format!("delete {ID}")]);
    let seen = fake.seen.lock().unwrap();
    assert_eq!(
        seen.created[0]["resourceLimits"],
        json!({"memory": "256Mi"})
    );
    assert_eq!(seen.created[0]["env"], json!({"A": "b=c"}));
    assert_eq!(seen.created[0]["timeout"], 70);
    assert_eq!(seen.commands[0]["argv"], json!(["sh", "-c", "x --json"]));
    assert_eq!(seen.commands[0]["timeout"], 10_000);
}

#[tokio::test]
async fn a_command_that_cannot_start_ends_as_shells_have_it() {
    let fake = Fake::start(Script::Says(vec![ends("no such file")]));
    let ran = ran(&fake, &["run", "nothing"]).await;
    assert_eq!(ran.code, Some(127));
    assert_eq!(ran.stderr, "error: cannot run the command: no such file\n");
}

#[tokio::test]
async fn words_of_strangers_steer_no_terminal_and_make_no_rows() {
    let fake = Fake::start(Script::Hangs);
    let table = ran(&fake, &["snapshot", "list"]).await.stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    let json = ran(&fake, &["snapshot", "list", "--json"]).await.stdout;
    let name = serde_json::from_str::<Value>(&json).unwrap()[0]["name"].clone();
    assert!(name.as_str().unwrap().contains("\u{9b}2J"), "{json}");
    for shown in [table, json] {
        let steers = |char: char| char != '\n' && (char.is_control() || char == '\u{202e}');
        assert!(!shown.contains(steers), "{shown:?}");
    }
}

#[tokio::test]
async fn a_command_whose_time_is_over_ends_as_with_timeout() {
    let why = "timeout: killed after 1000 ms (killed by signal 9)";
    let fake = Fake::start(Script::Says(vec![ends(why)]));
    for arguments in [&["run", "sleep", "5"][..], &["exec", ID, "sleep", "5"]] {
        let ran = ran(&fake, arguments).await;
        assert_eq!(ran.code, Some(124));
        assert!(
            ran.stderr.contains("took too long: killed after 1000 ms"),
            "{}",
            ran.stderr
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_success_and_leaves_no_sandbox() {
    let fake = Fake::start(Script::Says(vec![says("stdout", "half")]));
    let ran = ran(&fake, &["run", "x"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), "half"));
    assert!(
        ran.stderr.contains("before the command ended"),
        "{}",
        ran.stderr
    );
    assert_eq!(fake.calls().last(), Some(&format!("delete {ID}")));
}

#[tokio::test]
async fn a_refused_create_is_told_with_its_code() {
    let fake = Fake::start(Script::Hangs);
    let ran = ran(&fake, &["run", "--image", "nowhere", "x"]).await;
    assert_eq!(ran.code, Some(125));
    assert!(
        ran.stderr
            .starts_with("error: no image is called `nowhere`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("DOCKER::SANDBOX_IMAGE_PULL_FAILED"),
        "{}",
        ran.stderr
    );
    assert_eq!(fake.calls(), ["create"]);
}

/// Starts the program on a command that hangs, sends it a signal once the command runs, and waits.
async fn interrupted(fake: &Fake, arguments: &[&str], signal: &str) -> Option<i32> {
    let mut child = fake
        .program(arguments)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = async {
        while !fake.calls().contains(&"command".to_owned()) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), started)
        .await
        .unwrap();
    let pid = child.id().unwrap().to_string();
    let kill = tokio::process::Command::new("kill")
        .args([signal, &pid])
        .status()
        .await
        .unwrap();
    assert!(kill.success());
    child.wait().await.unwrap().code()
}

#[tokio::test]
async fn a_signal_ends_the_command_and_deletes_the_sandbox() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let fake = Fake::start(Script::Hangs);
        assert_eq!(
            interrupted(&fake, &["run", "x"], signal).await,
            Some(code),
            "{signal}"
        );
        let calls = fake.calls();
        assert_eq!(calls.last(), Some(&format!("delete {ID}")), "{calls:?}");
    }
}

#[tokio::test]
async fn exec_ends_its_command_on_a_signal_but_not_the_sandbox() {
    let fake = Fake::start(Script::Hangs);
    assert_eq!(
        interrupted(&fake, &["exec", ID, "x"], "-INT").await,
        Some(130)
    );
    assert!(!fake.calls().iter().any(|call| call.starts_with("delete")));
}

#[tokio::test]
async fn output_is_live_and_a_reader_that_leaves_ends_the_run() {
    let line = says("stdout", &format!("{}\n", "x".repeat(1000)));
    let fake = Fake::start(Script::Says(vec![line; 5000]));
    let mut child = fake
        .program(&["run", "x"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap().len(), 1000);
    drop(lines);
    assert_eq!(child.wait().await.unwrap().code(), Some(141));
    assert_eq!(fake.calls().last(), Some(&format!("delete {ID}")));
}

#[tokio::test]
async fn create_prints_the_id() {
    let fake = Fake::start(Script::Hangs);
    assert_eq!(
        ran(&fake, &["create", "--timeout", "never"]).await.stdout,
        format!("{ID}\n")
    );
    let json: Value =
        serde_json::from_str(&ran(&fake, &["--json", "create", "-l", "a=b"]).await.stdout).unwrap();
    assert_eq!(json["id"], ID);
    let seen = fake.seen.lock().unwrap();
    assert_eq!(seen.created[0].get("timeout"), None);
    assert_eq!(seen.created[1]["timeout"], 3600);
    assert_eq!(seen.created[1]["metadata"], json!({"a": "b"}));
}

#[tokio::test]
async fn list_shows_rows_ids_or_json() {
    let fake = Fake::start(Script::Hangs);
    let table = ran(&fake, &["list"]).await.stdout;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["ID", "IMAGE", "STATE", "CREATED", "EXPIRES"]);
    assert_eq!(
        rows[1],
        [ID, "host", "Running", "2030-01-01T00:00:00Z", "never"]
    );
    assert_eq!(
        ran(&fake, &["list", "-q"]).await.stdout,
        format!("{ID}\n{OTHER}\n")
    );
    let json: Value = serde_json::from_str(&ran(&fake, &["list", "--json"]).await.stdout).unwrap();
    assert_eq!(json[1]["id"], OTHER);
}

#[tokio::test]
async fn kill_goes_on_after_a_failure_and_reports_it() {
    let fake = Fake::start(Script::Hangs);
    let ran = ran(&fake, &["kill", OTHER, "0b0e", "zz", "ffff"]).await;
    assert_eq!((ran.code, ran.stdout), (Some(1), format!("{ID}\n")));
    let errors: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(
        errors[0].contains("DOCKER::SANDBOX_NOT_FOUND"),
        "{errors:?}"
    );
    assert!(errors[1].contains("`zz` is no sandbox id"), "{errors:?}");
    assert!(errors[2].contains("begins with `ffff`"), "{errors:?}");
}

#[tokio::test]
async fn sandboxes_are_paused_in_memory_or_to_disk_and_resumed() {
    let fake = Fake::start(Script::Hangs);
    for (words, code, printed, expected) in [
        (&["pause", ID][..], 0, ID, vec![format!("pause {ID} {{}}")]),
        (
            &["pause", "--to-disk", "0b0e"],
            0,
            ID,
            vec![format!("pause {ID} {{\"to\": \"disk\"}}")],
        ),
        (
            &["resume", OTHER, ID],
            1,
            ID,
            vec![format!("resume {OTHER}"), format!("resume {ID}")],
        ),
    ] {
        fake.seen.lock().unwrap().calls.clear();
        let ran = ran(&fake, words).await;
        assert_eq!(
            (ran.code, ran.stdout),
            (Some(code), format!("{printed}\n")),
            "{words:?}"
        );
        let mut calls = fake.calls();
        calls.retain(|call| call != "list");
        assert_eq!(calls, expected, "{words:?}");
        let is_told = ran.stderr.contains("DOCKER::SANDBOX_NOT_PAUSED");
        assert_eq!(is_told, code == 1, "{}", ran.stderr);
    }
}
