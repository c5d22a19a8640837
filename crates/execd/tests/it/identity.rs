//! Work for another user: every route has that user's rights, groups and home.

use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::multipart::{TYPE, body};
use crate::world::{Setup, World, until};

/// Ann is in the group `shared`, and has a home.
const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nann:x:4300:4301::/usr:/bin/sh\n";
const GROUP: &str = "root:x:0:\nann:x:4301:\nshared:x:4400:bob,ann\n";

#[test]
fn searches_moves_and_uploads_have_the_users_rights() {
    let world = World::new();
    world.sh(
        "mkdir own hidden; touch own/file hidden/secret; chown -R 4242:4243 own; \
         chmod 700 hidden; chmod 755 . ..",
    );
    let own = |route: &str| format!("/v1/filesystem/4242/4243{route}");
    let found = world.get(&own(&world.query("/files/search", ""))).json();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(
        world
            .get(&own(&world.query("/directories/list", "hidden")))
            .error()
            .0,
        403
    );
    let at = |name: &str| world.d(name).to_str().unwrap().to_owned();
    for (from, to, status) in [
        ("own/file", "own/new/file", 200),
        ("own/new/file", "file", 403),
        ("hidden/secret", "own/secret", 403),
    ] {
        let order = json!([{"src": at(from), "dest": at(to)}]);
        assert_eq!(
            world.post(&own("/files/mv"), &order).status,
            status,
            "{from} {to}"
        );
    }
    let made = world.d("own/new").metadata().unwrap();
    assert_eq!((made.uid(), made.gid()), (4242, 4243));
    let replaced = json!({at("hidden/secret"): {"old": "a", "new": "b"}});
    assert_eq!(world.post(&own("/files/replace"), &replaced).error().0, 403);
    assert_eq!(
        world
            .delete(&own(&world.query("/directories", "hidden")))
            .error()
            .0,
        403
    );
    // No thread that is left over works for that user.
    until("the threads of that user end", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", world.pid())).unwrap();
        let mut states = tasks
            .flatten()
            .map(|it| std::fs::read_to_string(it.path().join("status")));
        states.all(|text| text.is_ok_and(|text| !text.contains("\t4242\t")))
    });
}

#[test]
fn groups_and_home_come_from_the_sandboxs_tables() {
    let world = World::with(Setup {
        tables: Some((PASSWD, GROUP)),
        ..Setup::default()
    });
    world.sh("chmod 755 . ..; mkdir shared; chmod 770 shared; chown :shared shared");
    let form = body(&[(json!({"path": world.d("shared/file")}), b"x")]);
    let headers = [("Content-Type", TYPE)];
    for (user, status) in [("4300/4301", 200), ("4302/4301", 403)] {
        let path = format!("/v1/filesystem/{user}/files/upload");
        let sent = world.open("POST", &path, &headers, Some(&form)).finish();
        assert_eq!(sent.status, status, "{user} {sent:?}");
    }
    let made = world.d("shared/file").metadata().unwrap();
    assert_eq!((made.uid(), made.gid()), (4300, 4301));
    for (prefix, home) in [("/v1/filesystem/4300/4301", "/usr"), ("", "/root")] {
        let info = world.get(&format!("{prefix}/files/info?path=~")).json();
        assert_eq!(info["~"]["path"], home, "{prefix}");
    }
}
