//! `barchan config`, and a real server whose settings change under it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use barchan_client::Filter;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, program};
use crate::world::{World, request, until};

const KEY: &str = "a-key-that-nobody-may-see";

async fn config(home: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = program(home);
    command.arg("config").args(arguments);
    command.envs(variables.iter().copied());
    command.output().await.unwrap().into()
}

fn write(home: &Path, name: &str, text: &str) {
    fs::write(home.join(name), text).unwrap();
    fs::set_permissions(home.join(name), PermissionsExt::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn a_check_tells_every_fault_and_doubt() {
    let home = TempDir::new().unwrap();
    let bad = format!("[server]\nprot = 1\nport = \"x\"\napi_key = \"{KEY}\n\"\n");
    for (text, variables, code, told) in [
        ("[server]\nport = 1\n", &[][..], 0, &["a.toml: good"][..]),
        (
            "[proxy]\nidle_s = 0\n",
            &[],
            0,
            &[
                "warning: a.toml:2: proxy.idle_s: 0 counts as 1",
                "usable, 1 warning",
            ],
        ),
        (
            "[server]\nprot = 1\nport = \"x\"\napi_key = \"short\"\n",
            &[("BARCHAN_TYPO", "1")],
            1,
            &[
                "error: a.toml:2: there is no setting `server.prot`; is `server.port` meant?",
                "error: a.toml:3: server.port: ",
                "error: a.toml:4: server.api_key: ",
                "warning: BARCHAN_TYPO: nothing reads this variable",
                "a.toml: 3 errors, 1 warning",
            ],
        ),
        (&bad, &[], 1, &["error: a.toml:4: "]),
        (
            "[runtime]\ntype = \"docker\"\n",
            &[],
            1,
            &["barchan config import a.toml"],
        ),
    ] {
        write(home.path(), "a.toml", text);
        let ran = config(home.path(), variables, &["check", "a.toml"]).await;
        let all = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, Some(code), "{text}: {all}");
        for part in told {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains(KEY), "{all}");
    }
    let missing = config(home.path(), &[], &["check", "nothing.toml"]).await;
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("init-config"), "{}", missing.stderr);
    let json = config(home.path(), &[], &["check", "--json", "a.toml"]).await;
    assert_eq!(json.code, Some(1), "{}", json.stderr);
}

#[tokio::test]
async fn what_is_shown_has_its_origin_and_no_secret() {
    let home = TempDir::new().unwrap();
    write(home.path(), "key", &format!("{KEY}\n"));
    let file = home.path().join("key");
    let by_file = format!("server.api_key = {{ file = {file:?} }}");
    let literal = format!("[server]\nport = 9\napi_key = \"{KEY}\"\n");
    for (text, variables, line, origin) in [
        ("", &[][..], "server.port = 8080", "default"),
        (&literal, &[], "server.port = 9", "a.toml:2"),
        (&literal, &[], "# server.api_key = [secret]", "a.toml:3"),
        (&by_file, &[], &by_file, "a.toml:1"),
        (
            "",
            &[("BARCHAN_API_KEY", KEY)],
            "# server.api_key = [secret]",
            "BARCHAN_API_KEY",
        ),
        (
            &literal,
            &[("BARCHAN_SERVER__PORT", "10")],
            "server.port = 10",
            "BARCHAN_SERVER__PORT",
        ),
    ] {
        write(home.path(), "a.toml", text);
        let ran = config(home.path(), variables, &["show", "a.toml"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let found = ran.stdout.lines().find(|it| it.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("{line}: {}", ran.stdout));
        assert!(found.ends_with(&format!("# {origin}")), "{found}");
        let json = config(home.path(), variables, &["show", "--json", "a.toml"]).await;
        assert!(!(ran.stdout + &json.stdout).contains(KEY));
        let shown: Value = serde_json::from_str(&json.stdout).unwrap();
        assert!(shown.as_array().unwrap().len() > 35, "{shown}");
    }
}

#[tokio::test]
async fn settings_of_opensandbox_are_imported() {
    let home = TempDir::new().unwrap();
    let theirs = format!(
        "[server]\nport = 8081\napi_key = \"{KEY}\"\n[runtime]\ntype = \"docker\"\n\
         [docker]\nseccomp_profile = \"/p.json\"\n"
    );
    write(home.path(), ".sandbox.toml", &theirs);
    let told = config(home.path(), &[], &["import"]).await;
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    for part in [
        ".sandbox.toml:2: server.port means server.port = 8081",
        ".sandbox.toml:3: server.api_key means server.api_key = [secret]",
        ".sandbox.toml:7: docker.seccomp_profile is refused: ",
        "server.host is ignored: not set: ",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    let refused = config(home.path(), &[], &["import", "--write", "ours.toml"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("--skip-refused"),
        "{}",
        refused.stderr
    );
    assert!(!home.path().join("ours.toml").exists());
    let arguments = ["import", "--write", "ours.toml", "--skip-refused"];
    let written = config(home.path(), &[], &arguments).await;
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let ours = home.path().join("ours.toml");
    assert_eq!(
        fs::metadata(&ours).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(fs::read_to_string(&ours).unwrap().contains(KEY));
    let checked = config(home.path(), &[], &["check", "ours.toml"]).await;
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
    let again = config(home.path(), &[], &arguments).await;
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    let elsewhere = home.path().join("b.toml");
    fs::rename(home.path().join(".sandbox.toml"), &elsewhere).unwrap();
    let named = [("SANDBOX_CONFIG_PATH", elsewhere.to_str().unwrap())];
    let told_again = config(home.path(), &named, &["import"]).await.stdout;
    assert!(
        told_again.contains("b.toml:2: server.port means"),
        "{told_again}"
    );
    for said in [told.stdout, refused.stderr, written.stdout, told_again] {
        assert!(!said.contains(KEY), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_reads_its_settings_again() {
    let mut world = World::with_settings("[log]\nlevel = \"info\"\n").await;
    let reload = async || -> Ran {
        let mut command = world.command();
        let ran = command.args(["config", "reload"]).output();
        ran.await.unwrap().into()
    };
    let ran = reload().await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "nothing has changed\n"),
        "{}",
        ran.stderr
    );
    world.write_settings(&format!(
        "[server]\napi_key = \"{KEY}\"\nport = 7\n[log]\nlevel = \"barchan_server=debug,info\"\n\
         [limits]\nsandboxes_max = 1\n"
    ));
    let ran = reload().await;
    let told = "changed        server.api_key\nchanged        limits.sandboxes_max\n\
                changed        log.level\nneeds restart  server.port\n";
    assert_eq!(ran.stdout, told, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("others may read this file"),
        "{}",
        ran.stderr
    );
    let first = world.client().create(&request()).await.unwrap();
    let refused = world.client().create(&request()).await.unwrap_err();
    assert!(
        refused.to_string().contains("limits.sandboxes_max"),
        "{refused}"
    );
    world.write_settings("[server]\nport = \"x\"\nprot = 1\n");
    let ran = reload().await;
    assert_eq!(ran.code, Some(1));
    for part in [
        "nothing is changed",
        ":2: server.port",
        ":3: there is no setting",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let server = world.pid_of("server").unwrap();
    kill_process(server, Signal::HUP).unwrap();
    until("the signal's fault is told", async || {
        world.log().contains("SIGHUP changes nothing")
    })
    .await;
    assert!(world.client().create(&request()).await.is_err());
    world.write_settings("[log]\nlevel = \"warn\"\n[limits]\nsandboxes_max = 2\n");
    kill_process(server, Signal::HUP).unwrap();
    until("the signal is heard", async || {
        world.client().create(&request()).await.is_ok()
    })
    .await;
    let before = world.log();
    assert!(before.contains("revision=3"), "{before}");
    assert!(!before.contains(KEY), "{before}");
    world.client().delete(&first.id).await.unwrap();
    assert_eq!(
        world.log().lines().count(),
        before.lines().count(),
        "it still tells all"
    );
    // The launcher stays for as long as it has a sandbox.
    for left in world.client().list(&Filter::default()).await.unwrap() {
        world.client().delete(&left.id).await.unwrap();
    }
    world.stop().await;
}
