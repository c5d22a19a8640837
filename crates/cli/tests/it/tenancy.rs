//! `barchan key`, `barchan tenant` and `barchan audit` with a real server.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::program::Ran;
use crate::world::World;

impl World {
    async fn run(&self, arguments: &[&str]) -> Ran {
        let done = self.command().args(arguments).output().await;
        done.unwrap().into()
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        serde_json::from_str(&done.stdout).unwrap()
    }
}

#[tokio::test]
async fn keys_and_tenants_come_and_go_and_the_log_tells_of_them() {
    let mut world = World::new().await;
    for (arguments, told) in [
        (
            "tenant create a --sandboxes 2 --cpu 1.5 --memory 1Gi",
            "0 of 2",
        ),
        ("tenant create a", "TENANT_ALREADY_EXISTS"),
        ("tenant create b --cpu much", "no number of cores"),
        ("tenant set a --disk 10Gi --rate 5", "5/s"),
        ("tenant list", "10.00 GiB"),
        ("key create ci --tenant nobody", "TENANT_NOT_FOUND"),
        ("key create ci", "--tenant"),
        ("key revoke 0123456789ab", "KEY_NOT_FOUND"),
        ("tenant rm a", "a is removed"),
        ("tenant create a --sandboxes 1", "a"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let done = world.run(&arguments).await;
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(all.contains(told), "{arguments:?}: {done:?}");
    }
    let made = world.run(&["key", "create", "ci", "--tenant", "a", "--expires", "1d"]);
    let made = made.await;
    let key = made.stdout.trim().to_owned();
    assert!(
        key.starts_with("barchan_") && key.lines().count() == 1,
        "{made:?}"
    );
    assert!(!made.stderr.contains(&key), "{made:?}");
    let keys = world.json(&["key", "list"]).await;
    let id = keys[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&keys[0]["tenant"], &keys[0]["label"]),
        (&Value::from("a"), &Value::from("ci"))
    );
    let rotated = world.run(&["key", "rotate", &id, "--grace", "1h"]).await;
    assert!(
        rotated.stdout.starts_with(&format!("barchan_{id}_")),
        "{rotated:?}"
    );
    assert_ne!(rotated.stdout.trim(), key);
    let revoked = world.run(&["key", "revoke", &id]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let listed = world.run(&["key", "list"]).await;
    assert!(!listed.stdout.contains(&id), "{listed:?}");
    let told = world.run(&["audit", "--since", "1h", "--json"]).await;
    let operations: Vec<String> = told
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["outcome"] == "done" && line["actor"]["uid"].is_u64())
        .map(|line| line["operation"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "tenant.create",
        "tenant.change",
        "tenant.delete",
        "tenant.create",
        "key.create",
        "key.rotate",
        "key.revoke",
    ];
    assert_eq!(operations, expected);
    let other = world.run(&["audit", "--sandbox", "0b0e"]).await;
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), ""));
    world.stop().await;
}

#[tokio::test]
async fn who_follows_the_log_is_told_what_comes() {
    let mut world = World::new().await;
    let mut command = world.command();
    command.args(["audit", "--follow", "--tenant", "none-of-them"]);
    let mut others = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut command = world.command();
    command.args(["audit", "-f"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    for name in ["a", "b"] {
        let done = world.run(&["tenant", "create", name]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        let told = format!("tenant.create {name}  201  socket uid ");
        assert!(line.contains(&told), "{line}");
    }
    following.kill().await.unwrap();
    others.kill().await.unwrap();
    let told = others.wait_with_output().await.unwrap();
    assert!(told.stdout.is_empty(), "{told:?}");
    world.stop().await;
}
