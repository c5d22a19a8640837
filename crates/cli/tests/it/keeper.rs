//! The server of root, which runs as a user without rights, and the process that keeps root for it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use barchan_client::Filter;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::program::program;
use crate::world::{World, echo, request, until};

/// A field of what the kernel says of a process.
fn status(pid: Pid, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap().trim_start_matches(':').trim().to_owned()
}

#[tokio::test]
async fn the_server_has_no_rights_and_its_sandboxes_are_whole() {
    let mut world = World::new().await;
    let server = world.pid_of("server").unwrap();
    let state = world.state();
    let owner = |name: &str| state.join(name).metadata().unwrap().uid();
    let uid = owner("server").to_string();
    assert!((60_600..61_100).contains(&owner("server")), "{uid}");
    for (field, expected) in [
        ("Uid", [uid.as_str(); 4].join("\t")),
        ("Gid", [uid.as_str(); 4].join("\t")),
        ("Groups", String::new()),
        ("CapEff", "0000000000000000".to_owned()),
        ("CapPrm", "0000000000000000".to_owned()),
        ("NoNewPrivs", "1".to_owned()),
        ("Name", "barchan".to_owned()),
        // It leads a session, so that no terminal of root's is its own.
        ("NSsid", server.as_raw_nonzero().to_string()),
    ] {
        assert_eq!(status(server, field), expected, "{field}");
    }
    let process = Path::new("/proc").join(server.as_raw_nonzero().to_string());
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    let environment = fs::read(process.join("environ")).unwrap();
    assert!(
        !String::from_utf8_lossy(&environment).contains("HOME="),
        "root's environment"
    );
    assert_eq!(
        (owner(""), owner("server/barchan.db")),
        (0, owner("server"))
    );
    for name in ["jail", "disk", "images", "volumes"] {
        let folder = state.join(name).metadata().unwrap();
        assert_eq!((folder.uid(), folder.mode() & 0o077), (0, 0), "{name}");
    }
    let client = world.client();
    let id = client.create(&request()).await.unwrap().id;
    assert_eq!(echo(&client, &id).await.as_deref(), Some("alive\n"));
    // Whatever of the two is killed, the other goes too, and the next pair has the sandbox.
    for of in ["server", "keeper"] {
        let server = world.pid_of("server").unwrap();
        let keeper = Pid::from_raw(status(server, "PPid").parse().unwrap()).unwrap();
        assert_eq!(status(keeper, "Uid"), "0\t0\t0\t0");
        let killed = if of == "server" { server } else { keeper };
        kill_process(killed, Signal::KILL).unwrap();
        until("the other goes", async || {
            test_kill_process(server).is_err()
        })
        .await;
        world.restart().await;
        assert_eq!(echo(&client, &id).await.as_deref(), Some("alive\n"), "{of}");
    }
    let launcher = world.pid_of("launcher").unwrap();
    kill_process(launcher, Signal::KILL).unwrap();
    until("the end of the launcher is told", async || {
        let told = client.get(&id).await.unwrap();
        told.status.reason.as_deref() == Some("launcher_lost")
    })
    .await;
    until("another launcher makes sandboxes", async || {
        let Ok(made) = client.create(&request()).await else {
            return false;
        };
        echo(&client, &made.id).await.as_deref() == Some("alive\n")
    })
    .await;
    for sandbox in client.list(&Filter::default()).await.unwrap() {
        client.delete(&sandbox.id).await.unwrap();
    }
    world.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_end_is_killed() {
    let world = World::with_settings("[server]\nshutdown_grace_s = 0\n").await;
    let server = world.pid_of("server").unwrap();
    let keeper = Pid::from_raw(status(server, "PPid").parse().unwrap()).unwrap();
    // It takes no notice of any signal that it may refuse.
    kill_process(server, Signal::STOP).unwrap();
    kill_process(keeper, Signal::TERM).unwrap();
    until("both are gone", async || {
        test_kill_process(server).is_err() && is_over(keeper)
    })
    .await;
}

/// Whether a process has ended, whether or not anybody has asked how.
fn is_over(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

#[tokio::test]
async fn settings_that_only_root_may_read_are_read_again() {
    let world = World::with_settings("[limits]\nsandboxes_max = 1\n").await;
    let file = world.settings();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let key = world.state().with_file_name("key");
    fs::write(&key, "0123456789abcdef-secret").unwrap();
    fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    world.write_settings(&format!(
        "[server]\napi_key = {{ file = \"{}\" }}\n[limits]\nsandboxes_max = 2\n",
        key.display()
    ));
    let client = world.client();
    let report = client.reload().await.unwrap();
    assert_eq!(report.changed, ["server.api_key", "limits.sandboxes_max"]);
    // A fault in them changes nothing.
    fs::remove_file(&key).unwrap();
    let error = client.reload().await.unwrap_err().to_string();
    assert!(
        error.contains("cannot be read") && !error.contains("secret\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_user_that_cannot_serve_is_told_of() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
    for (settings, told) in [
        (
            "[server]\nuser = \"nobody-of-this-name\"\n",
            "there is no user",
        ),
        ("[server]\nuser = \"61100\"\n", "chmod o+x"),
    ] {
        let file = home.path().join("barchan.toml");
        fs::write(&file, settings).unwrap();
        let mut command = program(home.path());
        command.args(["serve", "--private", "--config"]).arg(&file);
        let ran = command.output().await.unwrap();
        let words = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{words}");
        assert!(
            words.contains("server.user") && words.contains(told),
            "{words}"
        );
    }
}
